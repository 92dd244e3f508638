import { releaseBytes } from '@latchkey/kit/http/release-bytes';
import { avatarDecodes } from '../files-metrics.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { type Avatar, endWaiting, selectAvatar } from './avatar.store.ts';
import { type AvatarContext, ENDED_KEPT_MS } from './avatar-context.ts';
import type { Decoders } from './decoder/decoders.ts';
import { ImageRefused } from './image/image-fault.ts';
import { removeNoted } from './noted-object.ts';
import { readRaw } from './raw-image.ts';
import { recordAvatar } from './record-avatar.ts';
import { storeImage } from './store-image.ts';

/** What the worker works with. */
export interface MakeContext extends AvatarContext {
  readonly decoders: Decoders;
  /** Told of an avatar that is through, by its id and, where it is refused, the reason. */
  readonly onSettled: (id: string, refusal: string | undefined) => void;
}

/**
 * Makes the image of an avatar and the avatar the account's (specification 4.2, architecture 6). It may be called again after it failed or was killed at
 * any point, and by several at once. What nobody waits for any more is not begun.
 *
 * @throws where something that it depends on fails: it is to be called again
 */
export async function makeAvatar(ctx: MakeContext, id: string): Promise<void> {
  const avatar = await selectAvatar(ctx.db, id);
  if (avatar?.state === 'waiting' && !(await makeImage(ctx, avatar))) return;
  if (avatar?.state !== 'waiting' && avatar?.state !== 'stored') return;
  const { refusal, unused } = await recordAvatar(ctx, avatar);
  ctx.onSettled(id, refusal);
  await removeNoted(ctx, [...unused, rawKey(avatar)]);
}

/** Makes and stores the image; false where there will be none. */
async function makeImage(ctx: MakeContext, avatar: Avatar): Promise<boolean> {
  const startedAt = performance.now();
  const tellTime = (outcome: string) => avatarDecodes.observe((performance.now() - startedAt) / 1_000, outcome);
  try {
    const image = await convert(ctx, rawKey(avatar));
    tellTime('ok');
    const facts = { avatarId: avatar.id, byteSize: image.length };
    ctx.logger.debug({ ...facts, ms: Math.round(performance.now() - startedAt) }, 'avatar decoded');
    return await storeImage(ctx, avatar, image);
  } catch (err) {
    if (!(err instanceof ImageRefused)) throw err;
    tellTime(err.fault);
    const refusal = `image_${err.fault}`;
    if (await endWaiting(ctx.db, avatar.id, { state: 'refused', refusal, keptMs: ENDED_KEPT_MS }))
      ctx.onSettled(avatar.id, refusal);
    await removeNoted(ctx, [rawKey(avatar)]);
    return false;
  }
}

/** A file goes by its path: every other way costs as much as a fifth of the decoding. */
async function convert(ctx: MakeContext, key: string): Promise<Buffer> {
  const path = ctx.store.localPath(key);
  if (path !== undefined) return ctx.decoders.convert({ path });
  const raw = await readRaw(ctx, key);
  const image = await ctx.decoders.convert(raw);
  // After a failure it may still be on its way to a process that is being ended.
  releaseBytes(raw);
  return image;
}

const rawKey = ({ accountId, rawId }: Avatar) => objectKey(accountId, rawId);
