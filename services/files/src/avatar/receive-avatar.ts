import type { Readable } from 'node:stream';
import type { Origin } from '@latchkey/kit/audit/actor';
import { commonErrors, DomainError } from '@latchkey/kit/errors';
import { newId, parseId } from '@latchkey/kit/id';
import { within } from '@latchkey/kit/within';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { Overdue, unlessOverdue } from '../storage/upload/store-body.ts';
import { endWaiting, insertAvatar, selectAvatar } from './avatar.store.ts';
import { ENDED_KEPT_MS } from './avatar-context.ts';
import type { AvatarResult, AvatarResults } from './avatar-results.ts';
import { removeNoted } from './noted-object.ts';
import { receiveRaw } from './raw-image.ts';

/** Has a worker make an avatar, those of a smaller number first. Rejects within a second where the queue can't be reached. */
export type EnqueueAvatar = (id: string, priority: number) => Promise<void>;

/** What the receiving end works with. */
export interface ReceiveContext extends Pick<FilesContext, 'db' | 'store' | 'avatarLimits' | 'logger'> {
  readonly enqueue: EnqueueAvatar;
  readonly results: AvatarResults;
}

/** An image as it is sent. */
export interface IncomingAvatar {
  readonly accountId: string;
  readonly body: Readable;
  /** In bytes, where the sender has told it. */
  readonly byteSize: number | undefined;
  /** Who sends it. */
  readonly origin: Origin;
}

/** Time for what an upload needs beside its body and its wait, in milliseconds. */
const SLACK_MS = 30_000;

/** How long an answer waits for what failed to be given up, in milliseconds. */
const GIVE_UP_MS_MAX = 1_500;

/** What is sent is of no use once its request has ended, as it does with a loss of power. */
const FOR_A_WHILE = { durable: false };

/** Refusals by which a worker settles an avatar; they are kept by name. */
const REFUSALS = {
  image_unsupported: errors.image_unsupported,
  image_hides_file: errors.image_hides_file,
  image_animated: errors.image_animated,
  image_too_many_pixels: errors.image_too_many_pixels,
  image_side_too_long: errors.image_side_too_long,
  image_damaged: errors.image_damaged,
  image_undecodable: errors.image_undecodable,
  account_not_found: errors.avatar_not_found,
};

/**
 * Takes an image, has a worker make an avatar of it and answers the avatar's id once it is the account's. What is sent is noted for removal before it is
 * stored, so that nothing is left of it however this ends.
 *
 * @throws `avatar_too_large`, `file_empty`, `upload_timeout`, `upload_interrupted`; what the worker refused; `dependency_unavailable` where the database,
 *   the store, the queue or a worker is away: nothing is left then, unless all that was missing is that identity is told, which is made up for
 */
export async function receiveAvatar(ctx: ReceiveContext, incoming: IncomingAvatar): Promise<string> {
  const { bodyMs, waitMs, byteSizeMax } = ctx.avatarLimits;
  const accountId = parseId(incoming.accountId);
  if (!accountId) throw errors.avatar_not_found();
  if (incoming.byteSize !== undefined && incoming.byteSize > byteSizeMax) throw errors.avatar_too_large();
  const avatar = { id: newId(), accountId, rawId: newId(), origin: incoming.origin };
  const key = objectKey(accountId, avatar.rawId);
  const recent = await insertAvatar(ctx.db, avatar, bodyMs + waitMs + SLACK_MS);
  return finish(avatar.id, await makeMade(ctx, { id: avatar.id, key, priority: recent }, incoming.body));
}

interface Begun {
  readonly id: string;
  readonly key: string;
  /** Whoever has had few made lately comes first: some accounts that send many are not to stop the others. */
  readonly priority: number;
}

/** Stores what is sent and waits for what becomes of it. */
async function makeMade(ctx: ReceiveContext, { id, key, priority }: Begun, body: Readable): Promise<AvatarResult> {
  let isStored = false;
  try {
    await storeRaw(ctx, key, body);
    isStored = true;
    await ctx.enqueue(id, priority).catch((cause: unknown) => unavailable(cause));
    const result = await ctx.results.wait(id, ctx.avatarLimits.waitMs);
    return result.kind === 'open' ? await giveUp(ctx, id, key) : result;
  } catch (err) {
    // A store that failed may finish later: the object's note stays, and the sweeper removes it then.
    const gaveUp = giveUp(ctx, id, isStored || isClients(err) ? key : undefined).catch((cause: unknown) => {
      ctx.logger.warn({ err: cause, avatarId: id }, 'failed avatar is left to the sweeper');
    });
    // A database that is frozen is not waited for twice.
    await within(GIVE_UP_MS_MAX, gaveUp);
    throw err instanceof Overdue ? err.cause : err;
  }
}

/** Whether it was for what was sent, and not for the store, that it was not stored. */
function isClients(err: unknown): boolean {
  return err instanceof DomainError && err.kind !== 'unavailable';
}

async function storeRaw(ctx: ReceiveContext, key: string, body: Readable): Promise<void> {
  const late = new AbortController();
  const deadline = setTimeout(() => late.abort(errors.upload_timeout()), ctx.avatarLimits.bodyMs);
  let refusal: unknown;
  const bytes = async function* () {
    try {
      yield* receiveRaw(body, ctx.avatarLimits.byteSizeMax, late.signal);
    } catch (err) {
      refusal = err;
      throw err;
    }
  };
  try {
    await unlessOverdue(ctx.store.put(key, bytes(), late.signal, FOR_A_WHILE), late.signal);
  } catch (err) {
    if (err instanceof Overdue) throw err;
    if (refusal instanceof DomainError) throw refusal;
    unavailable(err);
  } finally {
    clearTimeout(deadline);
  }
}

/** Ends an avatar that nobody has made yet, so that nobody will; says what became of one that somebody has. */
async function giveUp(ctx: ReceiveContext, id: string, key: string | undefined): Promise<AvatarResult> {
  if (await endWaiting(ctx.db, id, { state: 'abandoned', keptMs: ENDED_KEPT_MS })) {
    if (key !== undefined) await removeNoted(ctx, [key]);
    return { kind: 'open' };
  }
  const avatar = await selectAvatar(ctx.db, id);
  if (avatar?.state === 'recorded' || avatar?.state === 'replaced') return { kind: 'done' };
  return avatar?.refusal === undefined ? { kind: 'open' } : { kind: 'refused', reason: avatar.refusal };
}

function finish(id: string, result: AvatarResult): string {
  if (result.kind === 'done') return id;
  if (result.kind === 'open') throw commonErrors.dependency_unavailable();
  throw REFUSALS[result.reason as keyof typeof REFUSALS]?.() ?? errors.image_damaged();
}

function unavailable(cause: unknown): never {
  const err = commonErrors.dependency_unavailable();
  err.cause = cause;
  throw err;
}
