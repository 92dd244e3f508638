import type { Logger } from '@latchkey/kit/log/logger';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { AvatarLimits } from './avatars/avatar-limits.ts';
import type { FilesDatabase } from './db/schema.ts';
import type { FindOwnedApplications } from './storage/application/owned-application.ts';
import type { DownloadUrls } from './storage/download/download-url.ts';
import type { ObjectStore } from './storage/object-store/object-store.ts';

/** Limits of decisions 9, in the units they are used in. */
export interface FileLimits {
  readonly allowanceMib: number;
  readonly fileCountMax: number;
  readonly byteSizeMax: number;
  readonly uploadDeadlineMs: number;
  /** How long a lease is good for unless it is renewed. */
  readonly uploadLeaseMs: number;
  /** Most downloads that may be open in one process. */
  readonly downloadsAtOnce: number;
  /** How often what is left over is looked for. */
  readonly sweepIntervalMs: number;
}

/** What the use cases of this service work on. */
export interface FilesContext {
  readonly db: Kysely<FilesDatabase>;
  /** For the few statements that are worth a name. */
  readonly pool: pg.Pool;
  readonly store: ObjectStore;
  /** Which of some applications are the account's, asked of the apps service. */
  readonly findOwned: FindOwnedApplications;
  readonly downloadUrls: DownloadUrls;
  readonly limits: FileLimits;
  readonly avatarLimits: AvatarLimits;
  readonly clock: () => Date;
  readonly logger: Logger;
}
