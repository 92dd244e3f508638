import { Gauge, isMeasuring } from './metrics/instrument.ts';
import { Probe } from './metrics/probe.ts';
import { QUEUE_PREFIX } from './queue.ts';
import type { Redis } from './redis.ts';

const queueJobs = new Gauge({
  name: 'latchkey_queue_jobs',
  help: 'Jobs in a queue, by state: waiting, active, delayed or failed. Every process that adds to the queue tells of all of them.',
  labels: ['queue', 'state'],
});

const oldestWaiting = new Gauge({
  name: 'latchkey_queue_oldest_waiting_seconds',
  help: 'Age of the job that has waited longest in a queue; 0 when none waits.',
  labels: ['queue'],
});

/** How a queue stands. */
interface Depth {
  readonly queue: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  readonly oldestSeconds: number;
}

/** Has scrapes see how queues stand, read over a connection of whoever adds to them. Returns what ends that. */
export function watchQueues(redis: Redis, queues: readonly string[]): () => void {
  if (!isMeasuring()) return () => undefined;
  const probe = new Probe({
    name: `queues of ${redis.options.connectionName}`,
    read: () => Promise.all(queues.map((queue) => readDepth(redis, queue))),
  });
  const unwatch = [
    probe.watch(),
    queueJobs.watch(() =>
      (probe.value ?? []).flatMap(({ queue, waiting, active, delayed, failed }) => [
        [waiting, queue, 'waiting'] as const,
        [active, queue, 'active'] as const,
        [delayed, queue, 'delayed'] as const,
        [failed, queue, 'failed'] as const,
      ]),
    ),
    oldestWaiting.watch(() => (probe.value ?? []).map(({ queue, oldestSeconds }) => [oldestSeconds, queue] as const)),
  ];
  return () => {
    for (const end of unwatch) end();
  };
}

/** Jobs with a priority that are looked at for the oldest, of those that come first. */
const LOOKED_AT_MAX = 1_000;

async function readDepth(redis: Redis, queue: string): Promise<Depth> {
  const key = (part: string) => `${QUEUE_PREFIX}:${queue}:${part}`;
  const [waiting, behind, active, delayed, failed, ...oldest] = await Promise.all([
    redis.llen(key('wait')),
    // Those that have a priority.
    redis.zcard(key('prioritized')),
    redis.llen(key('active')),
    redis.zcard(key('delayed')),
    redis.zcard(key('failed')),
    // Jobs are put in at the head and taken from the tail.
    redis.lindex(key('wait'), -1),
    redis.zrange(key('prioritized'), '0', String(LOOKED_AT_MAX - 1), 'WITHSCORES').then(earliestAdded),
  ]);
  const ages = await Promise.all(oldest.map((id) => (id === null ? 0 : ageOf(redis, key(id)))));
  return { queue, waiting: waiting + behind, active, delayed, failed, oldestSeconds: Math.max(...ages) };
}

/** The id that was added before the others, of ids with their scores: a score is the priority times 2^32, and the number of the job. */
function earliestAdded(found: readonly string[]): string | null {
  let earliest: { readonly id: string; readonly number: number } | undefined;
  for (let i = 0; i + 1 < found.length; i += 2) {
    const number = Number(found[i + 1]) % 2 ** 32;
    if (!earliest || number < earliest.number) earliest = { id: found[i] as string, number };
  }
  return earliest?.id ?? null;
}

/** How long ago a job was added, in seconds; 0 for one that is not there any more. */
async function ageOf(redis: Redis, jobKey: string): Promise<number> {
  const addedAt = await redis.hget(jobKey, 'timestamp');
  return addedAt === null ? 0 : Math.max(0, (Date.now() - Number(addedAt)) / 1_000);
}
