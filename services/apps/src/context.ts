import type { BufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { deriveKey } from '@latchkey/kit/crypto/secrets';
import type { Database } from '@latchkey/kit/database/database';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createReads } from './application/application.store.ts';
import type { AppsConfig } from './config.ts';
import { Vault } from './runtime-key/runtime-key-text.ts';

/**
 * Creations run one by one for an account, changes for an application: waiting for its lock in the
 * database, they would use up the pool. No limit on the total: the gateway's rate limit bounds it.
 */
const WRITES = {
  concurrency: Number.POSITIVE_INFINITY,
  concurrencyPerKey: 1,
  size: Number.POSITIVE_INFINITY,
  sizePerKey: 200,
  waitMs: DEADLINES_MS.queue,
};

export type AppsContext = Readonly<ReturnType<typeof createContext>>;

export function createContext(
  config: AppsConfig,
  { db, pool }: Database<unknown>,
  others: {
    readonly clock: () => Date;
    /** To be called after the commit of an event. */
    readonly wakeRelay: () => void;
    /** Counts events for live clients, by application. */
    readonly usage: BufferedCounts<'events'>;
  },
) {
  return {
    ...{ ...others, db, pool, reads: createReads(pool) },
    vault: new Vault(config.SECRET_KEY),
    /** Signs the download tokens of feeds. */
    downloadKey: deriveKey(config.SECRET_KEY, 'apps/update-download'),
    writes: new CallQueue(WRITES),
    /** Successful rotations allowed per application in any hour. */
    rotationsPerHour: config.RUNTIME_KEY_ROTATIONS_PER_HOUR,
    applicationsMax: config.APPLICATIONS_LIMIT,
  };
}
