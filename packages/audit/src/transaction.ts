import { setTimeout as delay } from 'node:timers/promises';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError } from '@latchkey/kit/errors/errors';
import { type Kysely, type QueryExecutorProvider, sql, type Transaction } from 'kysely';
import { announce } from './announce.ts';
import { ResultTakenError, storeResult } from './idempotency.store.ts';
import { findResult, hasKey, prepareCall, takeCall } from './idempotency.ts';

/** A row of a transaction, which exists only if that was committed, and the transaction's id. */
interface CommitProof {
  readonly table: 'audit_entry' | 'idempotency_record' | 'resumable_upload';
  readonly id: string | Buffer;
  readonly xid: string;
}

const proofs = new WeakMap<QueryExecutorProvider, CommitProof>();

export function addCommitProof(tx: QueryExecutorProvider, proof: CommitProof): void {
  proofs.set(tx, proof);
}

const hooks = new WeakMap<QueryExecutorProvider, ReadonlyArray<() => unknown>>();

/** Adds what {@link runTransaction} runs, and waits for, once the transaction is committed. */
export function afterCommit(tx: QueryExecutorProvider, run: () => unknown): void {
  hooks.set(tx, [...(hooks.get(tx) ?? []), run]);
}

/** Longest wait for a database that can say what became of a commit, in milliseconds. */
const OUTCOME_MS_MAX = 10_000;
const OUTCOME_INTERVAL_MS = 100;

/**
 * Runs a transaction whose effect a client waits for. Where the acknowledgement of the commit is
 * lost, the transaction's entry in the audit log, or its stored result, shows whether it was
 * committed: the tables are of the same schema. A transaction without either is taken as failed.
 *
 * In a call with an idempotency key, it stores the result or returns that of an earlier call. `run`
 * may be called a second time then: it must have no effect outside of `tx`.
 *
 * @throws what `run` throws; the database's error if nothing was committed; `outcome_unknown` if
 *   the database cannot say so in time
 */
export async function runTransaction<DB, T>(
  db: Kysely<DB>,
  run: (tx: Transaction<DB>) => Promise<T>,
  outcomeMsMax = OUTCOME_MS_MAX,
): Promise<T> {
  const call = takeCall();
  if (!call) return runToOutcome(db, run, outcomeMsMax);
  const runCall = async (tx: Transaction<DB>) => {
    const earlier = call.isLookedUp ? undefined : await findResult<T>(tx, call);
    if (earlier) return earlier.value;
    const value = await run(tx);
    // Not stored: a rejection may be repeated, with what it commits, such as a count of failures.
    if (value instanceof DomainError) return value;
    const xid = await storeResult(tx, prepareCall(call, call.sealingKey, value));
    addCommitProof(tx, { table: 'idempotency_record', id: call.id, xid });
    return value;
  };
  return runToOutcome(db, runCall, outcomeMsMax).catch((err: unknown) => {
    const isUndone = err instanceof DomainError && err.reason !== 'outcome_unknown';
    if (!(err instanceof ResultTakenError) && !(call.isLookedUp && isUndone)) throw err;
    // Another call may have had the effect since the look-up.
    call.isLookedUp = false;
    return runToOutcome(db, runCall, outcomeMsMax);
  });
}

/** Runs one statement, in a transaction only if the call has an idempotency key. */
export function runStatement<DB, T>(db: Kysely<DB>, run: (db: Kysely<DB>) => Promise<T>): Promise<T> {
  return hasKey() ? runTransaction(db, run) : run(db);
}

async function runToOutcome<DB, T>(db: Kysely<DB>, run: (tx: Transaction<DB>) => Promise<T>, outcomeMsMax: number): Promise<T> {
  let ended: { readonly tx: Transaction<DB>; readonly result: T } | undefined;
  try {
    await db.transaction().execute(async (tx) => {
      ended = { tx, result: await run(tx) };
    });
  } catch (err) {
    // Before the commit, a lost connection undoes everything.
    const proof = ended && proofs.get(ended.tx);
    if (!proof || !isDatabaseUnavailable(err)) throw err;
    if (!(await isCommitted(db, proof, performance.now() + outcomeMsMax))) throw err;
  }
  const { tx, result } = ended as NonNullable<typeof ended>;
  await Promise.all((hooks.get(tx) ?? []).map((hook) => hook()));
  // Last: a stream of changes verifies its session then, which a hook may have ended.
  announce(db, tx);
  return result;
}

async function isCommitted<DB>(db: Kysely<DB>, { table, id, xid }: CommitProof, giveUpAt: number): Promise<boolean> {
  for (;;) {
    try {
      // Two statements: the second one sees what the end of the transaction left.
      if (!(await isInProgress(db, xid))) return await hasRow(db, table, id);
    } catch (err) {
      if (!isDatabaseUnavailable(err)) throw err;
    }
    if (performance.now() >= giveUpAt) throw commonErrors.outcome_unknown();
    await delay(OUTCOME_INTERVAL_MS);
  }
}

/**
 * True if a commit is still under way, as after a lost connection. A crash loses ids that were
 * never written: those are not below the current one, and `pg_xact_status` rejects them. Another
 * transaction may get a lost id, so only the row proves a commit.
 */
async function isInProgress<DB>(db: Kysely<DB>, xid: string): Promise<boolean> {
  const { rows } = await sql<{ running: boolean | null }>`
    select case when pg_current_xact_id() > ${xid}::xid8
      then pg_xact_status(${xid}::xid8) = 'in progress' end as running`.execute(db);
  return rows[0]?.running === true;
}

async function hasRow<DB>(db: Kysely<DB>, table: CommitProof['table'], id: CommitProof['id']): Promise<boolean> {
  return (await sql`select from ${sql.table(table)} where id = ${id}`.execute(db)).rows.length > 0;
}
