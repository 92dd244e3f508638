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

/** The data path of avatars, which takes so many at once. */
export function createAvatarBody(ctx: ReceiveContext): ReceiveAvatarBody {
  let underWay = 0;
  return async ({ requestId, ...incoming }) => {
    const startedAt = performance.now();
    // It may break off before it is read and after; nobody else need listen.
    incoming.body.on('error', () => undefined);
    const facts = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
    underWay += 1;
    try {
      if (underWay > ctx.avatarLimits.uploadsAtOnce) throw errors.avatars_busy();
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
      underWay -= 1;
    }
  };
}

function toDomainError(err: unknown): DomainError | undefined {
  if (err instanceof DomainError) return err;
  return fromConnectError(err) ?? (isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
}
