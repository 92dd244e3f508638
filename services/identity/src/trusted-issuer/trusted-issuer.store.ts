import { toId } from '@latchkey/kit/validation/id';
import { sql } from 'kysely';
import { type Db, valuesOf } from '../db/schema.ts';

interface NewTrustedIssuer {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly issuer: string;
  readonly audience: string;
  readonly claims: readonly string[];
  readonly lookup_hash: Buffer;
  readonly jwks: string | null;
  readonly scopes: readonly string[];
  readonly all_applications: boolean;
  readonly application_ids: readonly string[];
  readonly lifetime_seconds: number;
  readonly created_at: Date;
}
export type TrustedIssuerRow = Omit<NewTrustedIssuer, 'lookup_hash'>;

export async function selectTrustedIssuers(db: Db, accountId: string): Promise<TrustedIssuerRow[]> {
  const { rows } = await sql<TrustedIssuerRow>`
    select * from trusted_issuer where account_id = ${accountId} order by created_at, id`.execute(db);
  return rows;
}

export async function countTrustedIssuers(db: Db, accountId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from trusted_issuer where account_id = ${accountId}`.execute(db);
  return rows[0]?.count ?? 0;
}

export async function hasTrustedIssuer(db: Db, id: string): Promise<boolean> {
  return (await sql`select from trusted_issuer where id = ${id}`.execute(db)).rows.length > 0;
}

export async function insertTrustedIssuer(tx: Db, row: NewTrustedIssuer): Promise<TrustedIssuerRow> {
  const { rows } = await sql<TrustedIssuerRow>`insert into trusted_issuer ${valuesOf(row)} returning *`.execute(tx);
  return rows[0] as TrustedIssuerRow;
}

export async function deleteTrustedIssuerRow(tx: Db, accountId: string, id: string): Promise<TrustedIssuerRow | undefined> {
  const { rows } = await sql<TrustedIssuerRow>`
    delete from trusted_issuer where account_id = ${accountId} and id = ${id} returning *`.execute(tx);
  return rows[0];
}

/**
 * The trusted issuers whose claims a token has, up to a limit.
 * @param target audience or id of those that are asked for; undefined for all
 */
export async function selectCandidates(
  db: Db,
  { lookupHashes, claims }: { readonly lookupHashes: readonly Buffer[]; readonly claims: readonly string[] },
  target: string | undefined,
  limit: number,
): Promise<TrustedIssuerRow[]> {
  const isTarget = target === undefined ? sql`` : sql`and (id = ${toId(target)} or audience = ${target})`;
  const { rows } = await sql<TrustedIssuerRow>`
    select * from trusted_issuer
    where lookup_hash = any(${lookupHashes}) and claims <@ ${claims}::text[] ${isTarget} limit ${limit}`.execute(db);
  return rows;
}

/** Counts keys of trusted issuers that have not expired, revoked ones included. */
export async function countExchangedKeys(tx: Db, accountId: string, now: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_key
    where account_id = ${accountId} and trusted_issuer_id is not null and expires_at > ${now}`.execute(tx);
  return rows[0]?.count ?? 0;
}

export async function revokeExchangedKeys(tx: Db, accountId: string, trustedIssuerId: string, now: Date) {
  const { rows } = await sql<{ public_id: string }>`
    update api_key set revoked_at = ${now}, updated_at = ${now}
    where account_id = ${accountId} and trusted_issuer_id = ${trustedIssuerId} and revoked_at is null and expires_at > ${now}
    returning public_id`.execute(tx);
  return rows;
}
