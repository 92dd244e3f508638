import type { Kysely } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';

export interface ReleaseSettings {
  readonly public_updates: boolean;
  readonly signing_keys: string[];
}

export async function selectReleaseSettings(
  db: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
): Promise<ReleaseSettings | undefined> {
  const found = db.selectFrom('application').select(['public_updates', 'signing_keys']).where('id', '=', applicationId);
  return found.where('account_id', '=', accountId).executeTakeFirst();
}

export async function selectSigningKeys(db: Kysely<AppsDatabase>, applicationId: string): Promise<readonly string[]> {
  const found = db.selectFrom('application').select('signing_keys').where('id', '=', applicationId);
  return (await found.executeTakeFirst())?.signing_keys ?? [];
}
