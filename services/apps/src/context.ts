import type { KeyObject } from 'node:crypto';
import type { BufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import type { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import type pg from 'pg';
import type { createReads } from './application/application.store.ts';
import type { Db } from './db/schema.ts';
import type { Vault } from './runtime-key/vault.ts';

export interface AppsContext {
  readonly db: Db;
  readonly pool: pg.Pool;
  readonly reads: ReturnType<typeof createReads>;
  readonly vault: Vault;
  /** Signs the download tokens of feeds. */
  readonly downloadKey: KeyObject;
  readonly clock: () => Date;
  /** To be called after the commit of an event. */
  readonly wakeRelay: () => void;
  /** Successful rotations allowed per application in any hour. */
  readonly rotationsPerHour: number;
  /**
   * Creations run one by one for an account, changes for an application: waiting for its lock in
   * the database, they would use up the pool.
   */
  readonly writes: CallQueue;
  readonly applicationsMax: number;
  /** Counts events for live clients, by application. */
  readonly usage: BufferedCounts<'events'>;
}
