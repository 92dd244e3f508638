import { findReplay } from '@latchkey/audit/idempotency';
import { removeObjectsSoon } from '../storage/object-deletion/object-deletion.ts';
import { selectAvatar } from './avatar.store.ts';
import { type AvatarContext, recordAvatar } from './record-avatar.ts';

/**
 * Id of the avatar of an earlier upload with the idempotency key of this call; undefined without
 * one. An avatar that is stored, but not yet the account's, is recorded first.
 *
 * @throws `idempotency_key_reused`, `idempotency_in_progress`, `dependency_unavailable`
 */
export async function findUploadedAvatar(ctx: AvatarContext): Promise<string | undefined> {
  const id = await findReplay<string>(ctx.db);
  const avatar = id === undefined ? undefined : await selectAvatar(ctx.db, id);
  if (avatar?.state === 'stored') await removeObjectsSoon(ctx, await recordAvatar(ctx, avatar));
  return id;
}
