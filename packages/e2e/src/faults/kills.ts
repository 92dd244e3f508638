import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import type { SeededRandom } from '../client/random.ts';
import { Violation } from './request.ts';
import type { Target } from './target.ts';
import { START_MS_MAX } from './workload.ts';

const PAUSE_MS_MAX = 2_000;
const DOWN_MS_MAX = 500;
const BACKENDS_KILLED = 'PostgreSQL backends ended';

/** Ends connections of the services, each with its transaction. */
async function endBackends(target: Target): Promise<void> {
  await withClient(await target.databaseUrl(), (client) =>
    client.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and backend_type = 'client backend' and random() < 0.7`),
  );
}

/**
 * Kills a process, a server or its backends at moments that the seed decides, one after the other,
 * while clients work step by step. All is ready again at the end.
 *
 * @param step false when a client has nothing more to do
 * @returns how often each was killed
 * @throws the first failure of a step
 */
export async function workUnderKills<Client>(
  target: Target,
  random: SeededRandom,
  clients: readonly Client[],
  step: (client: Client) => Promise<boolean>,
): Promise<Record<string, number>> {
  const ended = new AbortController();
  const work = async (client: Client) => {
    while (!ended.signal.aborted && (await step(client)));
  };
  const killing = killRepeatedly(target, random, ended.signal);
  killing.catch(() => ended.abort());
  const working = clients.map((client) =>
    work(client).catch((err: unknown) => {
      ended.abort();
      throw err;
    }),
  );
  const results = await Promise.allSettled(working);
  ended.abort();
  const [kills] = await Promise.allSettled([killing]);
  for (const result of [...results, kills]) if (result.status === 'rejected') throw result.reason;
  return kills.status === 'fulfilled' ? kills.value : {};
}

async function killRepeatedly(target: Target, random: SeededRandom, signal: AbortSignal) {
  const backends = { name: BACKENDS_KILLED, breakIt: () => endBackends(target), repair: () => undefined };
  const kills = [...target.kills, backends];
  const counts: Record<string, number> = {};
  while (!signal.aborted) {
    await pause(random.below(PAUSE_MS_MAX), undefined, { signal }).catch(() => undefined);
    const { name, breakIt, repair } = random.pick(kills);
    await breakIt();
    await pause(random.below(DOWN_MS_MAX));
    await repair();
    await eventually(() => target.isReady(), { timeoutMs: START_MS_MAX, intervalMs: 50 }).catch((cause: unknown) => {
      throw new Violation(`Not ready again: ${name}`, { cause });
    });
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
