import { setTimeout as delay } from 'node:timers/promises';
import { createLiveApplications, type LiveApplication } from './live-application.ts';
import { LiveClients } from './live-clients.ts';
import { type Servers, type Shape, type Side, startOurs, waitUntilAnswers } from './ours.ts';
import { commandOf, cpuSecondsOf } from './process-tree.ts';
import { type Figure, median, percentile, range } from './report.ts';

const SOCKETS = 5_000;
const STORMS = 3;
/** Events that the clients miss while they are away. */
const MISSED = 3;
const REST_MS = 3_000;
/** Between two reads, so that the reader uses little CPU. */
const PAUSE_MS = 2;

/** Measurements of one storm. */
type Storm = Awaited<ReturnType<typeof storm>>;

/**
 * Clients that reconnect all together, each with the last event that it knows, to a node that has
 * just replaced one that was killed. In one process, the clients are cut off instead.
 */
export async function measureStorm(servers: Servers, shape: Shape, applications: number): Promise<Figure[]> {
  const ours = await startOurs(servers, shape);
  const clients = servers.stops.use(new LiveClients());
  const held = await createLiveApplications(ours.baseUrl, applications);
  await clients.openAll(ours.livePort, requestsTo(held), SOCKETS);
  const storms: Storm[] = [];
  for (let i = 0; i < STORMS; i += 1) storms.push(await storm(ours, shape, clients, held, i * MISSED));
  return figuresOf(storms, `${SOCKETS} clients of ${applications} applications, ${shape}`);
}

async function storm(ours: Side, shape: Shape, clients: LiveClients, held: LiveApplication[], known: number) {
  const [first] = held as [LiveApplication];
  const rest = await readUntil(first, delay(REST_MS));
  if (shape === 'deployed') await killRealtime(ours);
  await clients.cut();
  for (let i = 0; i < MISSED; i += 1) await Promise.all(held.map((application) => application.change()));
  await waitUntilAnswers(`http://127.0.0.1:${ours.livePort}/asyncapi.json`);
  const cpuBefore = cpuSecondsOf(ours.measured());
  const { begun: before, reached } = await clients.expect(SOCKETS * (1 + MISSED));
  const { at } = await clients.open(ours.livePort, requestsTo(held, known), SOCKETS);
  const during = await readUntil(first, reached);
  const end = await reached;
  return {
    ratio: median(during) / median(rest),
    restMs: median(rest),
    stormMs: median(during),
    worstMs: percentile(during, 0.99),
    seconds: (end.at - at) / 1_000,
    retries: end.retries,
    /** CPU of the process that plays the clients. */
    clientCpuSeconds: end.cpuSeconds - before.cpuSeconds,
    cpuSeconds: cpuSecondsOf(ours.measured()) - cpuBefore,
  };
}

function figuresOf(storms: readonly Storm[], what: string): Figure[] {
  const of = (name: keyof Storm) => storms.map((storm) => storm[name]);
  return [
    {
      id: 'storm',
      what: `${what}, get-application-settings meanwhile`,
      value: `${median(of('stormMs')).toFixed(1)} ms, 99 % within ${median(of('worstMs')).toFixed(0)} ms`,
      baseline: `${median(of('restMs')).toFixed(1)} ms at rest`,
      result: `${median(of('ratio')).toFixed(2)} (${range(of('ratio'), 2)})`,
      goal: '≤ 3',
    },
    {
      id: 'storm',
      what: `${what}, until all have what they missed`,
      value: `${median(of('seconds')).toFixed(1)} s`,
      baseline: `CPU ${median(of('cpuSeconds')).toFixed(1)} s, clients ${median(of('clientCpuSeconds')).toFixed(1)} s`,
      result: `${range(of('seconds'), 1)}, ${Math.max(...of('retries'))} refused and tried again`,
    },
  ];
}

const requestsTo = (held: readonly LiveApplication[], lastEventId?: number) =>
  held.map((application) => application.request(lastEventId));

/** Reads settings until a promise resolves; the times, in milliseconds. */
async function readUntil(application: LiveApplication, end: Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let isOver = false;
  void end.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    times.push(await application.read());
    await delay(PAUSE_MS);
  }
  return times;
}

async function killRealtime(ours: Side): Promise<void> {
  const found = ours.measured().find(({ pid }) => commandOf(pid).includes('/realtime/'));
  if (!found) throw new Error('There is no realtime process');
  process.kill(found.pid, 'SIGKILL');
}
