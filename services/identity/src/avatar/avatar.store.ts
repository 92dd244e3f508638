import type { Kysely } from 'kysely';
import type { IdentityDatabase } from '../db/schema.ts';

/** An avatar as the account's row has it. */
export interface RecordedAvatar {
  readonly id: string;
  readonly uploadedAt: Date;
}

/** The account's avatar, if it has one; undefined where there is no such account. Others who would change it wait. */
export async function selectAvatarLocked(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
): Promise<{ readonly avatar: RecordedAvatar | undefined } | undefined> {
  const row = await tx
    .selectFrom('account')
    .select(['avatar_id', 'avatar_uploaded_at'])
    .where('id', '=', accountId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (!row) return undefined;
  const { avatar_id: id, avatar_uploaded_at: uploadedAt } = row;
  return { avatar: id === null || uploadedAt === null ? undefined : { id, uploadedAt } };
}

export async function replaceAvatar(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  { id, uploadedAt }: RecordedAvatar,
): Promise<void> {
  await tx.updateTable('account').set({ avatar_id: id, avatar_uploaded_at: uploadedAt }).where('id', '=', accountId).execute();
}
