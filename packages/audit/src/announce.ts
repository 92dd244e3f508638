import type { AccountChange } from '@latchkey/kit/redis/account-changes';
import type { Kysely, QueryExecutorProvider } from 'kysely';

type Publish = (accountId: string, change: AccountChange) => void;

const publishers = new WeakMap<object, Publish>();

const recorded = new WeakMap<QueryExecutorProvider, Map<string, readonly [accountId: string, change: AccountChange]>>();

/** Publishes the audited changes of each `runTransaction` of a database, once it is committed. */
export function publishChanges<DB>(db: Kysely<DB>, publish: Publish): void {
  publishers.set(db, publish);
}

/** Most different changes of one transaction that are announced. */
const CHANGES_MAX = 100;

export function addChange(tx: QueryExecutorProvider, accountId: string, change: AccountChange): void {
  const changes = recorded.get(tx) ?? new Map();
  recorded.set(tx, changes);
  if (changes.size < CHANGES_MAX) changes.set(`${accountId} ${change.kind} ${change.applicationId}`, [accountId, change]);
}

export function announce<DB>(db: Kysely<DB>, tx: QueryExecutorProvider): void {
  const publish = publishers.get(db);
  if (publish) for (const [accountId, change] of recorded.get(tx)?.values() ?? []) publish(accountId, change);
}
