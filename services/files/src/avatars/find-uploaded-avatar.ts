import { findKept, takeCall } from '@latchkey/audit/idempotency';
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
  const call = takeCall();
  const kept = call && (await findKept<string>(ctx.db, call));
  const avatar = kept && (await selectAvatar(ctx.db, kept.value));
  if (avatar?.state === 'stored') await removeObjectsSoon(ctx, await recordAvatar(ctx, avatar));
  return kept?.value;
}
