import { toId } from '@latchkey/kit/validation/id';
import { type Insertable, type Selectable, sql } from 'kysely';
import type { Db, TrustedIssuerTable } from '../db/schema.ts';

export type TrustedIssuerRow = Selectable<TrustedIssuerTable>;

const COUNT = sql<number>`count(*)::int`.as('count');

const trustedBy = (db: Db, accountId: string) => db.selectFrom('trusted_issuer').where('account_id', '=', accountId);

export async function selectTrustedIssuers(db: Db, accountId: string): Promise<TrustedIssuerRow[]> {
  return trustedBy(db, accountId).selectAll().orderBy('created_at').orderBy('id').execute();
}

export async function countTrustedIssuers(db: Db, accountId: string): Promise<number> {
  return (await trustedBy(db, accountId).select(COUNT).executeTakeFirstOrThrow()).count;
}

export async function hasTrustedIssuer(db: Db, id: string): Promise<boolean> {
  return (await db.selectFrom('trusted_issuer').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}

export async function insertTrustedIssuer(tx: Db, row: Insertable<TrustedIssuerTable>): Promise<TrustedIssuerRow> {
  return tx.insertInto('trusted_issuer').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function deleteTrustedIssuerRow(tx: Db, accountId: string, id: string): Promise<TrustedIssuerRow | undefined> {
  const row = tx.deleteFrom('trusted_issuer').where('account_id', '=', accountId).where('id', '=', id);
  return row.returningAll().executeTakeFirst();
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
  const found = db
    .selectFrom('trusted_issuer')
    .selectAll()
    .where('lookup_hash', '=', sql<Buffer>`any(${lookupHashes})`)
    .where(sql<boolean>`claims <@ ${claims}::text[]`)
    .limit(limit);
  if (target === undefined) return found.execute();
  return found.where(({ eb, or }) => or([eb('id', '=', toId(target)), eb('audience', '=', target)])).execute();
}

/** Counts keys of trusted issuers that have not expired, revoked ones included. */
export async function countExchangedKeys(tx: Db, accountId: string, now: Date): Promise<number> {
  const { count } = await tx
    .selectFrom('api_key')
    .select(COUNT)
    .where('account_id', '=', accountId)
    .where('trusted_issuer_id', 'is not', null)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return count;
}

export async function revokeExchangedKeys(tx: Db, accountId: string, trustedIssuerId: string, now: Date) {
  return tx
    .updateTable('api_key')
    .set({ revoked_at: now, updated_at: now })
    .where('account_id', '=', accountId)
    .where('trusted_issuer_id', '=', trustedIssuerId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .returning('public_id')
    .execute();
}
