import type { Readable } from 'node:stream';
import { originFrom } from '@latchkey/audit/actor';
import { onBehalfOf } from '@latchkey/kit/call-origin';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors';
import { ConcurrencyLimit, shareOf } from '../concurrency-limit.ts';
import { errors } from '../errors.ts';
import { type ReceiveContext, receiveAvatar } from './receive-avatar.ts';

/** What answers the body of an avatar, as `UploadAvatarResponse` has it. */
export interface AvatarAnswer {
  readonly avatarId: string;
}

/** An image on its way, from another process or from this one. */
export interface AvatarBody {
  readonly accountId: string;
  /** Where the client is: what limits per address count. */
  readonly clientNetwork: string;
  readonly body: Readable;
  /** In bytes, where the sender has told it. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  /** Who sends it, as the header `x-latchkey-actor` has it; undefined where nobody was named. */
  readonly actor?: string | undefined;
}

/** Takes an image and answers once it is the account's avatar. Rejects with a DomainError, or with what is a defect. */
export type ReceiveAvatarBody = (incoming: AvatarBody) => Promise<AvatarAnswer>;

/** Most uploads of one account that are under way in one process: few accounts with slow bodies are not to hold the places of all. */
const AT_ONCE_PER_ACCOUNT = 2;

/** The data path of avatars, which takes so many at once. */
export function createAvatarBody(ctx: ReceiveContext): ReceiveAvatarBody {
  const { uploadsAtOnce } = ctx.avatarLimits;
  let underWay = 0;
  const ofAccount = new ConcurrencyLimit(AT_ONCE_PER_ACCOUNT);
  // An attacker with many accounts has few addresses.
  const ofNetwork = new ConcurrencyLimit(shareOf(uploadsAtOnce, AT_ONCE_PER_ACCOUNT));
  const enter = ({ accountId, clientNetwork }: Sender) => {
    if (ofAccount.isReached(accountId)) throw errors.avatars_under_way(standing(ctx, 'avatars-at-once', ofAccount.max));
    if (ofNetwork.isReached(clientNetwork)) throw errors.avatars_of_network(standing(ctx, 'avatars-at-once-ip', ofNetwork.max));
    if (underWay >= uploadsAtOnce) throw errors.avatars_busy();
    underWay += 1;
    ofAccount.add(accountId, 1);
    ofNetwork.add(clientNetwork, 1);
  };
  const leave = ({ accountId, clientNetwork }: Sender) => {
    underWay -= 1;
    ofAccount.add(accountId, -1);
    ofNetwork.add(clientNetwork, -1);
  };
  return async ({ requestId, actor, ...sent }) => {
    const incoming = { ...sent, origin: originFrom(actor, requestId) };
    const startedAt = performance.now();
    // It may break off before it is read and after; nobody else need listen.
    incoming.body.on('error', () => undefined);
    const facts = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
    let isIn = false;
    try {
      enter(incoming);
      isIn = true;
      const avatarId = await onBehalfOf(requestId, () => receiveAvatar(ctx, incoming));
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
      if (isIn) leave(incoming);
    }
  };
}

type Sender = Pick<AvatarBody, 'accountId' | 'clientNetwork'>;

/** What is said of a limit that is reached. */
function standing({ avatarLimits: { bodyMs, waitMs } }: ReceiveContext, policy: string, limit: number): Record<string, string> {
  return {
    policy,
    limit: String(limit),
    windowSeconds: String(Math.ceil((bodyMs + waitMs) / 1_000)),
    remaining: '0',
    retryAfterSeconds: String(Math.ceil(bodyMs / 1_000)),
  };
}

function toDomainError(err: unknown): DomainError | undefined {
  if (err instanceof DomainError) return err;
  return fromConnectError(err) ?? (isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
}
