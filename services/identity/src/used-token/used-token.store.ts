import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

/** Records the use of what is accepted once, until it expires; false if it was used before. */
export async function insertUsedToken(tx: Db, tokenHash: Buffer, expiresAt: Date): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into used_token (token_hash, expires_at) values (${tokenHash}, ${expiresAt})
    on conflict (token_hash) do nothing`.execute(tx);
  return numAffectedRows > 0n;
}
