import type { CallOrigin } from '@latchkey/kit/call-origin';
import type { ColumnType, Generated } from 'kysely';

/** An application. `updated_at` of the runtime keys moves when either is rotated. */
export interface ApplicationTable {
  id: string;
  account_id: string;
  name: string;
  status: Generated<'online' | 'paused'>;
  version: Generated<string>;
  license_requires_client_id: Generated<boolean>;
  user_requires_client_id: Generated<boolean>;
  user_requires_license: Generated<boolean>;
  license_levels: Generated<string[]>;
  socket_key_hash: Buffer;
  socket_key_sealed: Buffer;
  http_key_hash: Buffer;
  http_key_sealed: Buffer;
  runtime_keys_updated_at: Date;
  /** Times of the successful rotations of the last hour, in the order they were made; processes' clocks may differ. */
  recent_rotations: ColumnType<Date[], Date[] | undefined, Date[]>;
  /** `sequence` of the newest event that live clients hear of. */
  last_sequence: ColumnType<string, number | undefined, number>;
  created_at: Date;
}

/** A row of the event log. Rows outlive their application. */
export interface ApplicationEventTable {
  id: string;
  application_id: string;
  account_id: string;
  /** Absent from what live clients do not hear of. */
  sequence: ColumnType<string | null, number | null, never>;
  type: string;
  data: ColumnType<unknown, string, never>;
  created_at: Date;
  /** When its jobs were in the queues of all that want it; null while it is on its way. */
  delivered_at: ColumnType<Date | null, never, Date>;
  /** The request that it came from, for the logs and traces of its consumers. */
  call_origin: ColumnType<CallOrigin | null, string | null | undefined, never>;
}

export interface AppsDatabase {
  application: ApplicationTable;
  application_event: ApplicationEventTable;
}
