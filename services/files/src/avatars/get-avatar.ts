import { buffer } from 'node:stream/consumers';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { selectCurrent } from './avatar.store.ts';

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
