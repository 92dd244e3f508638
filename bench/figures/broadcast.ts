import { setTimeout as delay } from 'node:timers/promises';
import { createLiveApplication } from '../harness/live-application.ts';
import { LiveClients, now, upgradeRequest } from '../harness/live-clients.ts';
import { type Servers, type Side, startBareSockets, startOurs } from '../harness/ours.ts';
import { commandOf, type Stat } from '../harness/process-tree.ts';
import { compare, type Figure, median, range } from '../harness/report.ts';

const SOCKETS = 5_000;
const EVENTS_A_ROUND = 20;
const SETTLE_MS = 3_000;
const IDLE_MS = 6_000;

interface Sender {
  readonly stat: () => Stat;
  /**
   * Sends one message to all. Resolves with the delay of the last delivery after the response to
   * its cause.
   */
  readonly send: () => Promise<number>;
  readonly lastMs: number[];
  /** Share of a CPU that the process uses at rest. */
  idleShare: number;
}

/**
 * F6: CPU of the realtime process for each delivery of an event to idle sockets, over that of a
 * bare `ws` loop.
 */
export async function measureBroadcast(servers: Servers, rounds: number): Promise<Figure[]> {
  const ours = await startOurs(servers, 'deployed');
  const bare = await startBareSockets(servers);
  const clients = servers.stops.use(new LiveClients());
  const bareClients = servers.stops.use(new LiveClients());
  const { sender: a, text } = await holdOurs(ours, clients);
  const b = await holdBare(bare, bareClients, text);
  const idle = [a, b].map(({ stat }) => stat().cpuSeconds);
  await delay(IDLE_MS);
  for (const [i, sender] of [a, b].entries()) {
    sender.idleShare = (sender.stat().cpuSeconds - (idle[i] ?? 0)) / (IDLE_MS / 1_000);
  }
  for (const sender of [a, b]) await microsecondsPerDelivery(sender);
  for (const { lastMs } of [a, b]) lastMs.length = 0;
  const cpu = await compare(
    { id: 'F6', goal: '≤ 1.15', what: `one event to ${SOCKETS} sockets, CPU per delivery`, rounds, unit: 'µs', digits: 1 },
    () => microsecondsPerDelivery(a),
    () => microsecondsPerDelivery(b),
  );
  return [
    cpu,
    {
      id: 'F6',
      what: 'last delivery after the response to the PATCH',
      value: `${median(a.lastMs).toFixed(0)} ms`,
      baseline: `${median(b.lastMs).toFixed(0)} ms`,
      result: range(a.lastMs, 0),
      goal: '≤ 100 ms',
    },
  ];
}

async function holdOurs(side: Side, clients: LiveClients): Promise<{ sender: Sender; text: string }> {
  const application = await createLiveApplication(side.baseUrl);
  const realtime = side.measured().find(({ pid }) => commandOf(pid).includes('/realtime/'));
  const stat = () => side.measured().find(({ pid }) => pid === realtime?.pid) as Stat;
  await clients.openAll(side.livePort, application.request, 1);
  const { reached } = await clients.expect(1);
  await application.change();
  const { sample = '' } = await reached;
  await clients.openAll(side.livePort, application.request, SOCKETS - 1);
  await delay(SETTLE_MS);
  const send = async () => {
    const { reached } = await clients.expect(SOCKETS);
    const { answeredAt } = await application.change();
    return (await reached).at - answeredAt;
  };
  return { sender: { stat, send, lastMs: [], idleShare: 0 }, text: sample };
}

async function holdBare(side: Side, clients: LiveClients, text: string): Promise<Sender> {
  const stat = () => side.measured()[0] as Stat;
  await clients.open(side.livePort, upgradeRequest('/'), SOCKETS);
  await delay(SETTLE_MS);
  const send = async () => {
    const { reached } = await clients.expect(SOCKETS);
    const requestedAt = now();
    await fetch(side.baseUrl, { method: 'POST', body: text });
    return (await reached).at - requestedAt;
  };
  return { stat, send, lastMs: [], idleShare: 0 };
}

async function microsecondsPerDelivery({ stat, send, idleShare, lastMs }: Sender): Promise<number> {
  const before = { cpuSeconds: stat().cpuSeconds, at: performance.now() };
  for (let i = 0; i < EVENTS_A_ROUND; i += 1) lastMs.push(await send());
  const idleSeconds = (idleShare * (performance.now() - before.at)) / 1_000;
  return ((stat().cpuSeconds - before.cpuSeconds - idleSeconds) * 1e6) / (EVENTS_A_ROUND * SOCKETS);
}
