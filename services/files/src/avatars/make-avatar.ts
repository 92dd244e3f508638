import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ResultTakenError, storeResult } from '@latchkey/audit/idempotency.store';
import { newId } from '@latchkey/kit/validation/id';
import { avatarDecodes } from '../files-metrics.ts';
import { removeObjects } from '../storage/object-deletion/object-deletion.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { type Avatar, endWaiting, scheduleDeletion, selectAvatar, setImage } from './avatar.store.ts';
import { type AvatarContext, recordAvatar } from './avatar.ts';
import { ImageRejected } from './decoder/check-image.ts';
import type { DecoderPool } from './decoder/decoder-pool.ts';

/** Longest time to read the upload from a remote store, and to store the image. */
const STORE_MS = 10_000;
/** Time until the sweeper removes an image that did not become an avatar's. */
const DELETION_MS = 60_000;

export interface MakeContext extends AvatarContext {
  readonly decoders: DecoderPool;
}

/**
 * Makes the image of an avatar, and makes the avatar the account's (specification 4.3). Throws
 * where a dependency fails. May be repeated after a failure or a crash at any point, and
 * concurrently.
 */
export async function makeAvatar(ctx: MakeContext, id: string): Promise<void> {
  const avatar = await selectAvatar(ctx.db, id);
  if (avatar?.state !== 'waiting' && avatar?.state !== 'stored') return;
  const isStored = avatar.state === 'stored' || (await makeImage(ctx, avatar));
  const unused = isStored ? await recordAvatar(ctx, avatar) : [];
  await removeObjects(ctx, [...unused, rawKey(avatar)]);
}

/** Makes and stores the image; false where the image is rejected, or the upload no longer waits. */
async function makeImage(ctx: MakeContext, avatar: Avatar): Promise<boolean> {
  const startedAt = performance.now();
  const observe = (outcome: string) => avatarDecodes.observe((performance.now() - startedAt) / 1_000, outcome);
  try {
    const image = await convert(ctx, rawKey(avatar));
    observe('ok');
    const ms = Math.round(performance.now() - startedAt);
    ctx.logger.debug({ avatarId: avatar.id, byteSize: image.length, ms }, 'avatar decoded');
    return await storeImage(ctx, avatar, image);
  } catch (err) {
    const isRejected = err instanceof ImageRejected;
    if (!isRejected && !(err instanceof ResultTakenError)) throw err;
    if (isRejected) observe(err.reason.replace('image_', ''));
    await endWaiting(ctx.db, avatar.id, 'refused', isRejected ? err.reason : 'idempotency_in_progress');
    return false;
  }
}

/** A local file goes by its path: sending its bytes costs a fifth of the decoding. */
async function convert({ store, decoders }: MakeContext, key: string): Promise<Buffer> {
  const path = store.localPath(key);
  if (path !== undefined) return decoders.convert({ path });
  const body = await store.read(key);
  if (!body) throw new Error('The uploaded image is gone');
  const timer = setTimeout(() => body.destroy(new Error('The store took too long')), STORE_MS);
  const base64 = (await buffer(body).finally(() => clearTimeout(timer))).toString('base64');
  return decoders.convert({ base64 });
}

/**
 * Two workers may store images concurrently, each under its own key: one becomes the avatar's, and
 * the other is removed.
 */
async function storeImage(ctx: MakeContext, avatar: Avatar, image: Buffer): Promise<boolean> {
  const { account_id: accountId } = avatar;
  const imageId = newId();
  const key = objectKey(accountId, imageId);
  const deletionDueAt = await scheduleDeletion(ctx.db, key, DELETION_MS);
  await ctx.store.put(key, Readable.from([image]), AbortSignal.timeout(STORE_MS));
  const checksum = createHash('sha256').update(image).digest();
  const isSet = await commitImage(ctx, avatar, { imageId, byteSize: image.length, checksum, key, deletionDueAt });
  if (!isSet) await removeObjects(ctx, [key]);
  return isSet;
}

/** From here on the avatar becomes the account's, so the result of a call is kept with this. */
function commitImage({ db }: MakeContext, avatar: Avatar, image: Parameters<typeof setImage>[2]): Promise<boolean> {
  const { id: avatarId, idempotency_id: id, idempotency_fingerprint: fingerprint, idempotency_result: result } = avatar;
  if (!id || !fingerprint || !result) return setImage(db, avatarId, image);
  return db.transaction().execute(async (tx) => {
    const isSet = await setImage(tx, avatarId, image);
    if (isSet) await storeResult(tx, { id, fingerprint, result });
    return isSet;
  });
}

const rawKey = ({ account_id: accountId, raw_id: rawId }: Avatar) => objectKey(accountId, rawId);
