import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { AppsDatabase } from './db/schema.ts';
import type { Vault } from './runtime-key/vault.ts';

/** What the use cases of this service work on. */
export interface AppsContext {
  readonly db: Kysely<AppsDatabase>;
  /** For the few statements that are worth a name. */
  readonly pool: pg.Pool;
  readonly vault: Vault;
  readonly clock: () => Date;
  /** To be called after the commit of an event. */
  readonly wakeRelay: () => void;
  /** Successful rotations allowed per application in any hour. */
  readonly rotationsPerHour: number;
  /** Applications allowed per account; undefined means as many as it likes. */
  readonly applicationsMax: number | undefined;
}
