import { RESULT_LIFETIME_MS, SECRET_RESULT_LIFETIME_MS } from '@latchkey/contract/idempotency-key';
import { type QueryExecutorProvider, sql } from 'kysely';

/** Creates the table of results, for a migration. Safe to repeat. */
export async function createIdempotencyTable(db: QueryExecutorProvider): Promise<void> {
  await sql`
    create table if not exists idempotency_record (
      id bytea primary key,
      fingerprint bytea not null,
      -- The only credential that gets the result; null for every one of the account.
      credential text,
      result bytea not null,
      expires_at timestamptz(3) not null
    )`.execute(db);
  await sql`create index if not exists idempotency_record_expiry on idempotency_record (expires_at)`.execute(db);
}

/** A call with the result that it has once its effect is made. */
export interface PreparedCall {
  readonly id: Buffer;
  readonly fingerprint: Buffer;
  /** The only credential that gets the result, where that holds a secret. */
  readonly credential?: string | null;
  readonly result: Buffer;
}

/**
 * Locks a call until the transaction ends, and selects the result of an earlier one. The lock is
 * false while another transaction has it.
 */
export async function lockCall(tx: QueryExecutorProvider, id: Buffer) {
  const { rows } = await sql<{ locked: boolean; fingerprint: Buffer; credential: string | null; result: Buffer | null }>`
    select locked, fingerprint, credential, result
    from (select pg_try_advisory_xact_lock(${id.readBigInt64BE()}) as locked) call
    left join idempotency_record on id = ${id} and expires_at > now()`.execute(tx);
  return rows[0] as (typeof rows)[number];
}

/** Another call stored its result since {@link lockCall}. */
export class ResultTakenError extends Error {}

/**
 * Stores the result of a call in the transaction of its effect, and returns the transaction's id.
 *
 * @throws ResultTakenError
 */
export async function storeResult(
  tx: QueryExecutorProvider,
  { id, fingerprint, credential = null, result }: PreparedCall,
): Promise<string> {
  const lifetimeMs = credential === null ? RESULT_LIFETIME_MS : SECRET_RESULT_LIFETIME_MS;
  const { rows } = await sql<{ xid: string }>`
    insert into idempotency_record as existing (id, fingerprint, credential, result, expires_at)
    values (${id}, ${fingerprint}, ${credential}, ${result}, now() + ${lifetimeMs} * interval '1 millisecond')
    on conflict (id) do update set fingerprint = excluded.fingerprint, credential = excluded.credential,
      result = excluded.result, expires_at = excluded.expires_at
      where existing.expires_at <= now()
    returning pg_current_xact_id()::text as xid`.execute(tx);
  if (!rows[0]) throw new ResultTakenError();
  return rows[0].xid;
}
