import type { Transport } from '@connectrpc/connect';
import type { Origin } from '@latchkey/audit/actor';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue/worker';
import type { FilesContext } from '../context.ts';
import { findUploadedAvatar, removeAvatar } from './avatar.ts';
import { createDecoderPool } from './decoder/decoder-pool.ts';
import { makeAvatar } from './make-avatar.ts';
import { createReceiveAvatar } from './receive-avatar.ts';
import { type AvatarContext, sweepAvatars } from './record-avatar.ts';
import { createSetAvatar } from './set-avatar.client.ts';

const QUEUE = 'avatar';

const JOB_SLACK_MS = 5_000;

export type Avatars = ReturnType<typeof createAvatars>;

interface AvatarDeps {
  readonly identityTransport: Transport;
  readonly redisUrl: string;
}

export function createAvatars(ctx: FilesContext, deps: AvatarDeps, workerAt: 'inside' | 'apart') {
  const { limits, logger } = ctx;
  const queue = createQueueProducer({ url: deps.redisUrl, name: 'latchkey-files-avatars', queues: [QUEUE], logger });
  const enqueue = async (id: string, priority: number) => {
    if (!(await queue.add(QUEUE, [{ id, name: 'make', data: {}, priority }]))) throw new Error('The avatar queue is full');
  };
  const worker = workerAt === 'inside' ? createAvatarWorker(ctx, deps) : undefined;
  const recordCtx = { ...ctx, setAvatar: createSetAvatar(deps.identityTransport) };
  return {
    receive: createReceiveAvatar({ ...ctx, enqueue }),
    remove: (accountId: string, origin: Origin) => removeAvatar(recordCtx, accountId, origin),
    findUploaded: () => findUploadedAvatar(recordCtx),
    sweep: (signal: AbortSignal) => sweepAvatars(recordCtx, limits.sweepIntervalMs, signal),
    start() {
      queue.connect();
      worker?.start();
    },
    stop: () => stopAll(async () => worker?.stop(), queue.close),
  };
}

/** Composes the worker of the queue. Another takes over from a crashed one after 10 to 15 s. */
export function createAvatarWorker(ctx: Omit<AvatarContext, 'setAvatar'>, deps: AvatarDeps): QueueWorker {
  const { decodesMax, decodeMs, pixelsMax } = ctx.avatarLimits;
  const onLost = (err: Error) => ctx.logger.warn({ err }, 'decoder lost');
  const decoders = createDecoderPool({ pixelsMax, timeoutMs: decodeMs, onLost });
  const makeCtx = { ...ctx, decoders, setAvatar: createSetAvatar(deps.identityTransport) };
  const worker = createQueueWorker({
    url: deps.redisUrl,
    queue: QUEUE,
    name: 'latchkey-files-avatar-worker',
    concurrency: decodesMax,
    stopMsMax: decodeMs + JOB_SLACK_MS,
    logger: ctx.logger,
    handle: ({ id }) => makeAvatar(makeCtx, id),
  });
  return { start: worker.start, stop: () => worker.stop().finally(decoders.close) };
}
