import { setTimeout as delay } from 'node:timers/promises';
import { now } from './clock.ts';
import { createLiveApplications } from './live-application.ts';
import { LiveClients, upgradeRequest } from './live-clients.ts';
import { type Servers, type Side, startBareSockets, startOurs } from './ours.ts';
import { commandOf, type Stat } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

const SOCKETS = 5_000;
/** Events that one side sends in a round. */
const EVENTS_A_ROUND = 20;
const SETTLE_MS = 3_000;
const IDLE_MS = 6_000;

/** A side of the comparison: what is measured of it, and how it sends one message to all. */
interface Sender {
  readonly stat: () => Stat;
  readonly clients: LiveClients;
  /** Resolves with how long after the answer to its cause the last delivery was, in milliseconds. */
  readonly send: () => Promise<number>;
  /** Bytes that its resident set grew by for each socket. */
  readonly bytesPerSocket: number;
}

/** F6: CPU of the realtime process for each delivery of an event to idle sockets, over that of a bare `ws` loop, in turns. */
export async function measureBroadcast(servers: Servers, rounds: number): Promise<Figure[]> {
  const ours = await startOurs(servers, 'deployed');
  const bare = await startBareSockets();
  const stops: Array<() => void> = [];
  const clients = () => {
    const started = new LiveClients();
    stops.push(() => started.stop());
    return started;
  };
  try {
    const { sender: a, text } = await holdOurs(ours, clients());
    const b = await holdBare(bare, clients(), text);
    const idle = [a, b].map(({ stat }) => stat());
    await delay(IDLE_MS);
    const idleShares = [a, b].map(({ stat }, i) => (stat().cpuSeconds - (idle[i] as Stat).cpuSeconds) / (IDLE_MS / 1_000));
    const found = {
      ours: [] as number[],
      bare: [] as number[],
      ratio: [] as number[],
      last: [] as number[],
      bareLast: [] as number[],
    };
    for (let round = -1; round < rounds; round += 1) {
      const x = await microsecondsPerDelivery(a, idleShares[0] as number);
      const y = await microsecondsPerDelivery(b, idleShares[1] as number);
      if (round < 0) continue;
      found.ours.push(x.microseconds);
      found.bare.push(y.microseconds);
      found.ratio.push(x.microseconds / y.microseconds);
      found.last.push(...x.last);
      found.bareLast.push(...y.last);
    }
    return [
      {
        id: 'F6',
        what: `one event to ${SOCKETS} sockets, CPU per delivery`,
        value: `${median(found.ours).toFixed(1)} µs`,
        baseline: `${median(found.bare).toFixed(1)} µs`,
        result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
        goal: '≤ 1.5',
      },
      {
        id: 'F6',
        what: 'last delivery after the answer to the PATCH',
        value: `${median(found.last).toFixed(0)} ms`,
        baseline: `${median(found.bareLast).toFixed(0)} ms`,
        result: range(found.last, 0),
        goal: '≤ 500 ms',
      },
      {
        id: 'F6',
        what: 'memory of an idle socket',
        value: `${(a.bytesPerSocket / 1024).toFixed(1)} KiB`,
        baseline: `${(b.bytesPerSocket / 1024).toFixed(1)} KiB`,
        result: (a.bytesPerSocket / b.bytesPerSocket).toFixed(2),
        goal: '',
      },
      {
        id: 'F6',
        what: `CPU of a node at rest with ${SOCKETS} sockets`,
        value: `${((idleShares[0] as number) * 100).toFixed(1)} %`,
        baseline: `${((idleShares[1] as number) * 100).toFixed(1)} %`,
        result: '',
        goal: '',
      },
    ];
  } finally {
    for (const stop of stops) stop();
    await Promise.all([ours.child.stop(), bare.child.stop()]);
  }
}

async function holdOurs(side: Side, clients: LiveClients): Promise<{ sender: Sender; text: string }> {
  const [application] = await createLiveApplications(side.baseUrl);
  if (!application) throw new Error('There is no application');
  const realtime = side.measured().find(({ pid }) => commandOf(pid).includes('/realtime/'));
  const stat = () => side.measured().find(({ pid }) => pid === realtime?.pid) as Stat;
  const { reached: first } = await clients.expect(1);
  await clients.open(side.livePort, [application.request()], 1);
  await first;
  const { reached: sampled } = await clients.expect(1);
  await application.change();
  const { sample = '' } = await sampled;
  const before = stat();
  const { reached } = await clients.expect(SOCKETS - 1);
  await clients.open(side.livePort, [application.request()], SOCKETS - 1);
  await reached;
  await delay(SETTLE_MS);
  const send = async () => {
    const { reached } = await clients.expect(SOCKETS);
    const { answeredAt } = await application.change();
    return (await reached).at - answeredAt;
  };
  const bytesPerSocket = (stat().residentBytes - before.residentBytes) / SOCKETS;
  return { sender: { stat, clients, send, bytesPerSocket }, text: sample };
}

async function holdBare(side: Side, clients: LiveClients, text: string): Promise<Sender> {
  const stat = () => side.measured()[0] as Stat;
  const send = async () => {
    const { reached } = await clients.expect(SOCKETS);
    const askedAt = now();
    await fetch(side.baseUrl, { method: 'POST', body: text });
    return (await reached).at - askedAt;
  };
  const before = stat();
  await clients.open(side.livePort, [upgradeRequest('/')], SOCKETS);
  await delay(SETTLE_MS);
  const bytesPerSocket = (stat().residentBytes - before.residentBytes) / SOCKETS;
  return { stat, clients, send, bytesPerSocket };
}

/** @param idleShare of a CPU that the process uses when nothing is sent */
async function microsecondsPerDelivery({ stat, send }: Sender, idleShare: number) {
  const last: number[] = [];
  const before = { cpuSeconds: stat().cpuSeconds, at: performance.now() };
  for (let i = 0; i < EVENTS_A_ROUND; i += 1) last.push(await send());
  const idleSeconds = (idleShare * (performance.now() - before.at)) / 1_000;
  const seconds = stat().cpuSeconds - before.cpuSeconds - idleSeconds;
  return { last, microseconds: (seconds * 1e6) / (EVENTS_A_ROUND * SOCKETS) };
}
