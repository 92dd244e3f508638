import type { Db } from '../db/schema.ts';

/** An uploaded avatar, by its id and the time when its upload began. */
export interface Avatar {
  readonly id: string;
  readonly uploadedAt: Date;
}

/** The account's avatar or null, locked; undefined where there is no such account. */
export async function lockAvatar(tx: Db, accountId: string): Promise<Avatar | null | undefined> {
  const account = tx.selectFrom('account').select(['avatar_id as id', 'avatar_uploaded_at as uploadedAt']);
  const row = await account.where('id', '=', accountId).forNoKeyUpdate().executeTakeFirst();
  if (!row) return undefined;
  const { id, uploadedAt } = row;
  return id === null || uploadedAt === null ? null : { id, uploadedAt };
}

export async function updateAvatar(tx: Db, accountId: string, { id, uploadedAt }: Avatar): Promise<void> {
  await tx.updateTable('account').set({ avatar_id: id, avatar_uploaded_at: uploadedAt }).where('id', '=', accountId).execute();
}
