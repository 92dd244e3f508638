import type { CallContext } from '@latchkey/kit/log/request-context';
import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { ColumnType, Generated, Kysely, Selectable } from 'kysely';

/** The settings of an application. Each column has the name of its field in the protocol. */
interface SettingColumns {
  status: Generated<'online' | 'paused'>;
  version: Generated<string>;
  license_requires_client_id: Generated<boolean>;
  user_requires_client_id: Generated<boolean>;
  user_requires_license: Generated<boolean>;
}

export type SettingsRow = Selectable<SettingColumns>;

export interface ApplicationTable extends SettingColumns {
  id: string;
  account_id: string;
  name: string;
  license_levels: Generated<string[]>;
  socket_key_hash: Buffer;
  socket_key_sealed: Buffer;
  http_key_hash: Buffer;
  http_key_sealed: Buffer;
  runtime_keys_updated_at: Date;
  /** Times of the successful rotations of the last hour, in the order they were made. */
  recent_rotations: ColumnType<Date[], Date[] | undefined, Date[]>;
  /** `sequence` of the newest event for live clients. */
  last_sequence: ColumnType<string, number | undefined, number>;
  /** True if update feeds need no key. */
  public_updates: Generated<boolean>;
  /** Minisign public keys that the signatures of published releases verify with. */
  signing_keys: Generated<string[]>;
  created_at: Date;
  /** Time of the last change; null before the first. */
  updated_at: ColumnType<Date | null, never, unknown>;
}

/** A rotated key, accepted until it expires. The next rotation of its type replaces the row. */
export interface PreviousRuntimeKeyTable {
  application_id: string;
  type: 'socketKey' | 'httpKey';
  hash: Buffer;
  expires_at: Date;
  /** Written once a minute at most; null before the first use. */
  last_used_at: Date | null;
}

/** The one row about the event log. */
export interface EventLogTable {
  /** Changes when the log may have lost events that clients received. */
  epoch: string;
}

/** The number of applications of an account, maintained by triggers of `application`. */
export interface ApplicationCountTable {
  account_id: string;
  count: ColumnType<string, never, never>;
}

/** A row of the event log. Rows outlive their application. */
export interface ApplicationEventTable {
  id: string;
  application_id: string;
  account_id: string;
  /** Null if live clients are not notified. */
  sequence: ColumnType<string | null, number | null, never>;
  type: string;
  data: ColumnType<unknown, string, never>;
  created_at: Date;
  /** Time when its jobs were in all queues that need it; null before. */
  delivered_at: ColumnType<Date | null, never, Date>;
  /** The request that it came from, for the logs and traces of its consumers. */
  call_origin: ColumnType<CallContext | null, string | null | undefined, never>;
}

/** A file of a release; its size and digests are set by the publication. */
type StoredArtifact = Pick<ReleaseArtifact, 'fileId' | 'name' | 'platform' | 'arch' | 'kind' | 'signature'> &
  Partial<Pick<ReleaseArtifact, 'checksum' | 'sha512'>> & { readonly byteSize?: number };

export interface ReleaseTable {
  id: string;
  application_id: string;
  version: string;
  channel: string;
  notes: string;
  status: Generated<'draft' | 'published' | 'yanked'>;
  rollout_percent: number;
  artifacts: ColumnType<readonly StoredArtifact[], string, string>;
  published_at: Date | null;
  created_at: Date;
}

/** Releases that a channel offers updaters, written with each change of its published releases. */
export interface ReleaseFeedTable {
  application_id: string;
  channel: string;
  releases: ColumnType<unknown, string, string>;
}

export interface AppsDatabase {
  application: ApplicationTable;
  application_count: ApplicationCountTable;
  previous_runtime_key: PreviousRuntimeKeyTable;
  application_event: ApplicationEventTable;
  event_log: EventLogTable;
  release: ReleaseTable;
  release_feed: ReleaseFeedTable;
}

export type Db = Kysely<AppsDatabase>;
