import { buffer } from 'node:stream/consumers';
import { commonErrors } from '@latchkey/kit/errors';
import { parseId } from '@latchkey/kit/id';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { selectImage } from './avatar.store.ts';

/** An avatar with its image. */
export interface AvatarImage {
  readonly avatarId: string;
  /** WebP. */
  readonly image: Buffer;
}

/**
 * An account's avatar.
 *
 * @param avatarId the one that it has to be, where that is said
 * @throws `avatar_not_found`; `dependency_unavailable` where the store fails
 */
export async function getAvatar(
  ctx: Pick<FilesContext, 'db' | 'store'>,
  accountIdText: string,
  avatarIdText: string | undefined,
): Promise<AvatarImage> {
  const accountId = parseId(accountIdText);
  const avatarId = avatarIdText === undefined ? undefined : parseId(avatarIdText);
  if (!accountId || (avatarIdText !== undefined && !avatarId)) throw errors.avatar_not_found();
  const found = await selectImage(ctx.db, accountId, avatarId);
  if (!found) throw errors.avatar_not_found();
  const image = await readImage(ctx, objectKey(accountId, found.imageId));
  if (image) return { avatarId: found.id, image };
  // One that another took the place of a moment ago has no image any more; one that is there and has none is damage.
  if ((await selectImage(ctx.db, accountId, avatarId))?.imageId !== found.imageId) return getAvatar(ctx, accountId, avatarId);
  throw new Error(`Avatar ${found.id} has no image`);
}

async function readImage({ store }: Pick<FilesContext, 'store'>, key: string): Promise<Buffer | undefined> {
  try {
    const body = await store.read(key);
    return body && (await buffer(body));
  } catch (cause) {
    const err = commonErrors.dependency_unavailable();
    err.cause = cause;
    throw err;
  }
}
