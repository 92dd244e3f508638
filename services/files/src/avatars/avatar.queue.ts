import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue/worker';
import type { FilesContext } from '../context.ts';
import type { AvatarContext } from './avatar.ts';
import { createDecoderPool } from './decoder/decoder-pool.ts';
import { makeAvatar } from './make-avatar.ts';
import { createReceiveAvatar } from './receive-avatar.ts';

const QUEUE = 'avatar';

const JOB_SLACK_MS = 5_000;

export function createAvatars(ctx: FilesContext, redisUrl: string, workerAt: 'inside' | 'apart') {
  const queue = createQueueProducer({ url: redisUrl, name: 'latchkey-files-avatars', queues: [QUEUE], logger: ctx.logger });
  const enqueue = async (id: string, priority: number) => {
    if (!(await queue.add(QUEUE, [{ id, name: 'make', data: {}, priority }]))) throw new Error('The avatar queue is full');
  };
  const worker = workerAt === 'inside' ? createAvatarWorker(ctx, redisUrl) : undefined;
  return {
    receive: createReceiveAvatar(ctx, enqueue),
    start() {
      queue.connect();
      worker?.start();
    },
    stop: () => stopAll(async () => worker?.stop(), queue.close),
  };
}

/** Composes the worker of the queue. Another takes over from a crashed one after 10 to 15 s. */
export function createAvatarWorker(ctx: AvatarContext, redisUrl: string): QueueWorker {
  const { decodesMax, decodeMs, pixelsMax } = ctx.avatarLimits;
  const onLost = (err: Error) => ctx.logger.warn({ err }, 'decoder lost');
  const decoders = createDecoderPool({ pixelsMax, timeoutMs: decodeMs, onLost });
  const worker = createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-files-avatar-worker',
    concurrency: decodesMax,
    stopMsMax: decodeMs + JOB_SLACK_MS,
    logger: ctx.logger,
    handle: ({ id }) => makeAvatar({ ...ctx, decoders }, id),
  });
  return { start: worker.start, stop: () => worker.stop().finally(decoders.close) };
}
