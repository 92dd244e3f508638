import { buffer } from 'node:stream/consumers';
import type { Origin } from '@latchkey/audit/actor';
import { findReplay } from '@latchkey/audit/idempotency';
import { runStatement } from '@latchkey/audit/transaction';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { newId, parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { removeObjectsSoon } from '../storage/object-deletion/object-deletion.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { insertRemoval, selectAvatar, selectCurrent } from './avatar.store.ts';
import { type AvatarContext, recordAvatar } from './record-avatar.ts';

/**
 * An account's avatar, or only the one with this id (specification 4.3). Throws `avatar_not_found`;
 * `dependency_unavailable` where the store fails.
 */
export async function getAvatar(
  ctx: Pick<FilesContext, 'db' | 'store'>,
  accountId: string,
  avatarId: string | undefined,
): Promise<{ avatarId: string; image: Buffer }> {
  const owner = parseId(accountId);
  const wanted = avatarId === undefined ? undefined : parseId(avatarId);
  if (!owner || (avatarId !== undefined && !wanted)) throw errors.avatar_not_found();
  const found = await selectCurrent(ctx.db, owner, wanted);
  if (!found?.image_id) throw errors.avatar_not_found();
  const image = await readImage(ctx, objectKey(owner, found.image_id));
  if (image) return { avatarId: found.id, image };
  // The image of an avatar that was replaced a moment ago is gone.
  if ((await selectCurrent(ctx.db, owner, wanted))?.image_id !== found.image_id) return getAvatar(ctx, owner, wanted);
  throw new Error(`Avatar ${found.id} has no image`);
}

async function readImage({ store }: Pick<FilesContext, 'store'>, key: string): Promise<Buffer | undefined> {
  try {
    const body = await store.read(key);
    return body && (await buffer(body));
  } catch (cause) {
    throw Object.assign(commonErrors.dependency_unavailable(), { cause });
  }
}

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

/**
 * Takes the avatar from an account, and that of every upload begun before; without one it succeeds
 * too. The removal is stored first: if identity fails, the sweeper completes it. Throws
 * `avatar_not_found` for text other than a UUID, and `outcome_unknown` where the sweeper has to.
 */
export async function removeAvatar(ctx: AvatarContext, accountText: string, origin: Origin): Promise<void> {
  const accountId = parseId(accountText);
  if (!accountId) throw errors.avatar_not_found();
  const removal = await runStatement(ctx.db, (db) => insertRemoval(db, { id: newId(), accountId, origin }));
  const keys = await recordAvatar(ctx, removal).catch((cause: unknown) => {
    throw Object.assign(commonErrors.outcome_unknown(), { cause });
  });
  await removeObjectsSoon(ctx, keys);
}
