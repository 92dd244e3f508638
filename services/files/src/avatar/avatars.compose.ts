import type { Transport } from '@connectrpc/connect';
import { stopAll } from '@latchkey/kit/lifecycle';
import type { QueueWorker } from '@latchkey/kit/queue-worker';
import type { FilesContext } from '../context.ts';
import { createAvatarBody, type ReceiveAvatarBody } from './avatar.body.ts';
import type { AvatarContext } from './avatar-context.ts';
import { createAvatarQueue, createAvatarWorker } from './avatar-queue.ts';
import { createAvatarResults } from './avatar-results.ts';
import { createDecoders } from './decoder/decoders.ts';
import type { MakeContext } from './make-avatar.ts';
import { createSetAvatar } from './set-avatar.client.ts';
import { sweepAvatars } from './sweep-avatars.ts';

/** The work on avatars, composed and not yet started. */
export interface Avatars {
  readonly receive: ReceiveAvatarBody;
  sweep(signal: AbortSignal): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

/** What avatars are composed with. */
export interface AvatarDeps {
  /** Reaches the identity service. */
  readonly identityTransport: Transport;
  readonly redisUrl: string;
}

/** What avatars are made from. */
type MakerContext = Pick<FilesContext, 'db' | 'store' | 'avatarLimits' | 'logger'>;

/** Composes what takes avatars and, unless that is done apart, what makes them. */
export function createAvatars(ctx: FilesContext, deps: AvatarDeps, worker: 'inside' | 'apart'): Avatars {
  const avatarCtx = toAvatarContext(ctx, deps);
  const queue = createAvatarQueue(deps.redisUrl, ctx.logger);
  const results = createAvatarResults(ctx);
  const maker = worker === 'inside' ? createMaker({ ...avatarCtx, onSettled: results.settle }, deps.redisUrl) : undefined;
  return {
    receive: createAvatarBody({ ...avatarCtx, enqueue: queue.enqueue, results }),
    sweep: (signal) => sweepAvatars(avatarCtx, ctx.limits.sweepIntervalMs, signal),
    start() {
      queue.connect();
      maker?.start();
    },
    stop: () =>
      stopAll(
        () => maker?.stop(),
        () => queue.close(),
      ),
  };
}

/** Composes what makes avatars, by itself. */
export function createAvatarMaker(ctx: MakerContext, deps: AvatarDeps): QueueWorker {
  return createMaker({ ...toAvatarContext(ctx, deps), onSettled: () => undefined }, deps.redisUrl);
}

function toAvatarContext({ db, store, avatarLimits, logger }: MakerContext, { identityTransport }: AvatarDeps): AvatarContext {
  return { db, store, avatarLimits, logger, setAvatar: createSetAvatar(identityTransport) };
}

function createMaker(ctx: Omit<MakeContext, 'decoders'>, redisUrl: string): QueueWorker {
  const { decodesAtOnce: atOnce, decodeMs: timeoutMs, pixelsMax } = ctx.avatarLimits;
  const onLost = (err: Error) => ctx.logger.warn({ err }, 'decoder lost');
  const decoders = createDecoders({ atOnce, timeoutMs, pixelsMax, onLost });
  const worker = createAvatarWorker({ ...ctx, decoders }, redisUrl);
  return {
    start: worker.start,
    async stop() {
      await worker.stop();
      decoders.close();
    },
  };
}
