import type { Readable } from 'node:stream';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors';
import { errors } from '../errors.ts';
import { type ReceiveContext, receiveAvatar } from './receive-avatar.ts';

/** What answers the body of an avatar, as `UploadAvatarResponse` has it. */
export interface AvatarAnswer {
  readonly avatarId: string;
}

/** An image on its way, from another process or from this one. */
export interface AvatarBody {
  readonly accountId: string;
  readonly body: Readable;
  /** In bytes, where the sender has told it. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
}

/** Takes an image and answers once it is the account's avatar. Rejects with a DomainError, or with what is a defect. */
export type ReceiveAvatarBody = (incoming: AvatarBody) => Promise<AvatarAnswer>;

/** Most uploads of one account that are under way in one process: few accounts with slow bodies are not to hold the places of all. */
const AT_ONCE_PER_ACCOUNT = 2;

/** The data path of avatars, which takes so many at once. */
export function createAvatarBody(ctx: ReceiveContext): ReceiveAvatarBody {
  let underWay = 0;
  const underWayOf = new Map<string, number>();
  const enter = (accountId: string) => {
    const ofAccount = underWayOf.get(accountId) ?? 0;
    if (ofAccount >= AT_ONCE_PER_ACCOUNT) throw tooManyOfAccount(ctx.avatarLimits);
    if (underWay >= ctx.avatarLimits.uploadsAtOnce) throw errors.avatars_busy();
    underWay += 1;
    underWayOf.set(accountId, ofAccount + 1);
  };
  const leave = (accountId: string) => {
    underWay -= 1;
    const left = (underWayOf.get(accountId) ?? 1) - 1;
    if (left > 0) underWayOf.set(accountId, left);
    else underWayOf.delete(accountId);
  };
  return async ({ requestId, ...incoming }) => {
    const startedAt = performance.now();
    // It may break off before it is read and after; nobody else need listen.
    incoming.body.on('error', () => undefined);
    const facts = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
    let isIn = false;
    try {
      enter(incoming.accountId);
      isIn = true;
      const avatarId = await receiveAvatar(ctx, incoming);
      ctx.logger.info({ ...facts(), avatarId }, 'avatar');
      return { avatarId };
    } catch (err) {
      const known = toDomainError(err);
      if (!known) ctx.logger.error({ ...facts(), err }, 'avatar failed');
      else
        ctx.logger.info(
          { ...facts(), reason: known.reason, ...(known.cause !== undefined && { err: known.cause }) },
          'avatar refused',
        );
      throw known ?? err;
    } finally {
      if (isIn) leave(incoming.accountId);
    }
  };
}

function tooManyOfAccount({ bodyMs, waitMs }: ReceiveContext['avatarLimits']): DomainError {
  return errors.avatars_under_way({
    policy: 'avatars-at-once',
    limit: String(AT_ONCE_PER_ACCOUNT),
    windowSeconds: String(Math.ceil((bodyMs + waitMs) / 1_000)),
    remaining: '0',
    retryAfterSeconds: String(Math.ceil(bodyMs / 1_000)),
  });
}

function toDomainError(err: unknown): DomainError | undefined {
  if (err instanceof DomainError) return err;
  return fromConnectError(err) ?? (isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
}
