import { setTimeout as delay } from 'node:timers/promises';
import { originFrom } from '@latchkey/audit/actor';
import { identifyCall, prepareCall } from '@latchkey/audit/idempotency';
import { orRejectAfter } from '@latchkey/kit/concurrency/within';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { commonErrors, DomainError } from '@latchkey/kit/errors/errors';
import { onBehalfOf } from '@latchkey/kit/log/request-context';
import { newId, parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../context.ts';
import { errors, rejectUnavailable } from '../proto-errors.ts';
import { removeObjects } from '../storage/object-deletion/object-deletion.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { type AccountBody, Overdue, observeBodies, putWithDeadline } from '../storage/upload/upload-call.ts';
import { verifyBody } from '../storage/upload/verified-body.ts';
import { type Avatar, endOrphan, endWaiting, insertAvatar, selectAvatar } from './avatar.store.ts';
import { createUploadQuota } from './avatar-quota.ts';

export type ReceiveAvatar = ReturnType<typeof createReceiveAvatar>;

interface AvatarUpload extends AccountBody {
  readonly clientNetwork: string;
}

/** Queues an avatar for a worker, lower numbers first. Rejects within 1 s where Redis is away. */
type Enqueue = (id: string, priority: number) => Promise<void>;

/** Time that an upload needs besides its body and its wait, in milliseconds. */
const SLACK_MS = 30_000;
/** Longest wait for a failed upload to be abandoned; a frozen database is not waited for twice. */
const ABANDON_MS_MAX = 1_500;
const POLL_MS_MIN = 50;
const POLL_MS_MAX = 250;

export function createReceiveAvatar(ctx: FilesContext, enqueue: Enqueue) {
  const acquire = createUploadQuota(ctx.avatarLimits);
  return observeBodies({ name: 'avatar', logger: ctx.logger }, async (upload: AvatarUpload) => {
    const release = acquire(upload);
    return onBehalfOf(upload.requestId, () => receive(ctx, upload, enqueue)).finally(release);
  });
}

/**
 * Stores an upload, has a worker make an avatar of it, and waits until that is the account's. The
 * deletion of the upload is scheduled before it is stored, so nothing is left however this ends.
 */
async function receive(ctx: FilesContext, upload: AvatarUpload, enqueue: Enqueue): Promise<{ avatarId: string }> {
  const { bodyMs, waitMs, byteSizeMax } = ctx.avatarLimits;
  const accountId = parseId(upload.accountId);
  if (!accountId) throw errors.avatar_not_found();
  if ((upload.byteSize ?? 0) > byteSizeMax) throw errors.avatar_too_large();
  const [id, rawId] = [newId(), newId()];
  const key = objectKey(accountId, rawId);
  const origin = originFrom(upload.actor, upload.requestId);
  const identity = identifyCall(accountId, upload.idempotency ?? {});
  const call = identity && prepareCall(identity, ctx.resultKey, id);
  const dueMs = bodyMs + waitMs + SLACK_MS;
  const avatar = { id, accountId, rawId, origin, call, processLock: ctx.processLock.id };
  const insert = () => insertAvatar(ctx.db, avatar, dueMs).catch(rejectRunning);
  // Accounts with few recent avatars come first, so that a few accounts can't block the others.
  const priority = await insert().catch(async (err: unknown) => {
    if (!(err instanceof DomainError && call && (await endOrphan(ctx.db, call)))) throw err;
    return insert();
  });
  let isStored = false;
  try {
    await storeUpload(ctx, key, upload);
    isStored = true;
    await enqueue(id, priority).catch(rejectUnavailable);
    return { avatarId: toAvatarId((await waitUntilEnded(ctx, id)) ?? (await abandon(ctx, id, key))) };
  } catch (err) {
    // A store that failed may finish later: only the sweeper removes the object then.
    const isRejected = err instanceof DomainError && err.httpStatus !== 503;
    const abandoned = abandon(ctx, id, isStored || isRejected ? key : undefined);
    abandoned.catch((cause: unknown) => ctx.logger.warn({ err: cause, avatarId: id }, 'failed avatar is left to the sweeper'));
    const avatar = await orRejectAfter(ABANDON_MS_MAX, abandoned, commonErrors.outcome_unknown).catch(() => {
      if (isStored) throw commonErrors.outcome_unknown();
      // A worker makes nothing of an image that was not stored.
    });
    if (avatar && isStored) return { avatarId: toAvatarId(avatar) };
    throw err instanceof Overdue ? err.cause : err;
  }
}

/** Another upload with the idempotency key waits for its image. */
function rejectRunning(err: unknown): never {
  throw isUniqueViolation(err, 'avatar_call') ? commonErrors.idempotency_in_progress() : err;
}

/** Not durable: the upload is of no use after its request, which a loss of power ends. */
async function storeUpload(ctx: FilesContext, key: string, { body: source, checksum }: AvatarUpload): Promise<void> {
  const { bodyMs, byteSizeMax } = ctx.avatarLimits;
  const late = new AbortController();
  const { signal } = late;
  const deadline = setTimeout(() => late.abort(errors.upload_timeout()), bodyMs);
  const body = verifyBody(source, { limits: [[byteSizeMax, errors.avatar_too_large]], checksum: checksum ?? null }, signal);
  await putWithDeadline(ctx, { key, body, signal, durable: false }).finally(() => clearTimeout(deadline));
}

/** Polls the row, as the queue may lose jobs, until a worker ends it; undefined after `waitMs`. */
async function waitUntilEnded({ db, avatarLimits }: FilesContext, id: string): Promise<Avatar | undefined> {
  const endsAt = performance.now() + avatarLimits.waitMs;
  for (let pollMs = POLL_MS_MIN; performance.now() < endsAt; pollMs = Math.min(pollMs * 1.5, POLL_MS_MAX)) {
    await delay(pollMs);
    const avatar = await selectAvatar(db, id);
    if (avatar?.state !== 'waiting' && avatar?.state !== 'stored') return avatar;
  }
  return undefined;
}

/** Ends an avatar that no worker has made, so that none will; the avatar itself where one has. */
async function abandon(ctx: FilesContext, id: string, key: string | undefined): Promise<Avatar | undefined> {
  if (!(await endWaiting(ctx.db, id, 'abandoned'))) return selectAvatar(ctx.db, id);
  if (key !== undefined) await removeObjects(ctx, [key]);
  return undefined;
}

function toAvatarId(avatar: Avatar | undefined): string {
  if (avatar?.state === 'recorded' || avatar?.state === 'replaced') return avatar.id;
  if (avatar?.state === undefined || avatar.state === 'abandoned') throw commonErrors.dependency_unavailable();
  // The sweeper records an image that identity does not know of yet.
  if (avatar.state !== 'refused') throw commonErrors.outcome_unknown();
  if (avatar.refusal === 'idempotency_in_progress') throw commonErrors.idempotency_in_progress();
  if (avatar.refusal === 'account_not_found') throw errors.avatar_not_found();
  throw (errors[avatar.refusal as keyof typeof errors] ?? errors.image_damaged)();
}
