import { createHash } from 'node:crypto';
import { newId } from '@latchkey/kit/id';
import { objectKey } from '../storage/object-store/object-store.ts';
import { type Avatar, setImage } from './avatar.store.ts';
import type { AvatarContext } from './avatar-context.ts';
import { noteObject } from './noted-object.store.ts';
import { removeNoted } from './noted-object.ts';

/** Longest time for storing an image, in milliseconds, and how long after that the sweeper removes one that did not become an avatar's. */
const STORE_MS = 10_000;
const NOTE_MS = 60_000;

/** How long the worker has to tell identity of an avatar before the sweeper does, in milliseconds. */
const RECORD_MS = 60_000;

/**
 * Stores the image of an avatar that waits. Two workers may do so at once, each under a key of its own: one of the images becomes the avatar's, and the
 * other goes. No image is written that is not noted for removal, and the note goes in the statement that makes it the avatar's.
 *
 * @returns false where the avatar does not wait any more
 * @throws where the store or the database fails
 */
export async function storeImage(ctx: AvatarContext, { id, accountId }: Avatar, image: Buffer): Promise<boolean> {
  const imageId = newId();
  const key = objectKey(accountId, imageId);
  const note = await noteObject(ctx.db, key, NOTE_MS);
  await ctx.store.put(key, onePiece(image), AbortSignal.timeout(STORE_MS));
  const checksum = createHash('sha256').update(image).digest();
  const isSet = await setImage(ctx.db, id, { imageId, byteSize: image.length, checksum }, { key, note, dueMs: RECORD_MS });
  if (!isSet) await removeNoted(ctx, [key]);
  return isSet;
}

async function* onePiece(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}
