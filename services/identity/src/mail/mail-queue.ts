import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { createQueueWorker } from '@latchkey/kit/queue/worker';
import { createSweeper } from '@latchkey/kit/sweeper/sweeper';
import type { IdentityContext } from '../context.ts';
import { deliverMail } from './deliver-mail.ts';
import { selectPendingIds } from './mail.store.ts';
import type { SendMail } from './smtp.ts';

const QUEUE = 'mail';
/** Interval at which mails with lost jobs are added again, in milliseconds. */
const RECONCILE_INTERVAL_MS = 30_000;
const BATCH_MAX = 100;
/** Mails that one reconciliation adds at most; later ones wait for the next. */
const PENDING_MAX = 1_000;

export type MailQueue = Pick<ReturnType<typeof createMailQueue>, 'add'>;

/** Sends the mails of the outbox. Jobs have nothing but the id of a mail. */
export function createMailQueue(
  ctx: IdentityContext,
  { redisUrl, publicUrl, send }: { readonly redisUrl: string; readonly publicUrl: string; readonly send: SendMail },
) {
  const { logger } = ctx;
  const name = 'latchkey-identity-mail';
  const onReady = () => reconciler.wake();
  const producer = createQueueProducer({ url: redisUrl, name, queues: [QUEUE], logger, onReady });
  const addJobs = (ids: readonly string[]) =>
    producer.add(
      QUEUE,
      ids.map((id) => ({ id, name: 'send', data: {} })),
    );
  const addPending = async () => {
    const ids = await selectPendingIds(ctx.db, ctx.clock(), PENDING_MAX);
    for (let i = 0; i < ids.length; i += BATCH_MAX) if (!(await addJobs(ids.slice(i, i + BATCH_MAX)))) return;
  };
  const reconciler = createSweeper({ intervalMs: RECONCILE_INTERVAL_MS, logger, sweeps: { mail_queue: addPending } });
  const base = publicUrl.replace(/\/+$/, '');
  const worker = createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: `${name}-worker`,
    logger,
    handle: ({ id }) => deliverMail(ctx, id, send, base),
  });
  return {
    /** Adds committed mails. While Redis is down they wait for the reconciler. */
    add(...ids: readonly string[]): void {
      addJobs(ids).catch((err: unknown) => logger.debug({ err }, 'mails not added to the queue'));
    },
    start(): void {
      producer.connect();
      worker.start();
      reconciler.start();
    },
    stop: () => stopAll(reconciler.stop, worker.stop, producer.close),
  };
}
