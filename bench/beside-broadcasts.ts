import { createLiveApplications, type LiveApplication } from './live-application.ts';
import { LiveClients } from './live-clients.ts';
import { holdOne, timeReceipts } from './live-latency.ts';
import { type Servers, type Shape, startOurs } from './ours.ts';
import { type Figure, median, percentile } from './report.ts';

const SOCKETS = 5_000;
const SAMPLES = 100;

/** What others notice while one event after the other goes to thousands of sockets: another application's client, and a reader of settings. */
export async function measureBesideBroadcasts(servers: Servers, shape: Shape): Promise<Figure[]> {
  const ours = await startOurs(servers, shape);
  const [many, one] = [new LiveClients(), new LiveClients()];
  try {
    const [large] = (await createLiveApplications(ours.baseUrl)) as [LiveApplication];
    const { reached } = await many.expect(SOCKETS);
    await many.open(ours.livePort, [large.request()], SOCKETS);
    await reached;
    const small = await holdOne(ours, one);
    const receipts = () => timeReceipts(small, one, SAMPLES);
    const reads = () => timeReads(small);
    const rest = { receipts: await receipts(), reads: await reads() };
    const busy = await whileBroadcasting(large, many, async () => ({ receipts: await receipts(), reads: await reads() }));
    const figure = (what: string, during: readonly number[], atRest: readonly number[]): Figure => ({
      id: 'beside',
      what: `${what}, while one event after the other goes to ${SOCKETS} sockets, ${shape}`,
      value: `${median(during).toFixed(1)} ms`,
      baseline: `${median(atRest).toFixed(1)} ms at rest`,
      result: `99 % within ${percentile(during, 0.99).toFixed(0)} ms`,
      goal: '',
    });
    return [
      figure('PATCH to receipt by another client', busy.receipts, rest.receipts),
      figure('get-application-settings', busy.reads, rest.reads),
    ];
  } finally {
    many.stop();
    one.stop();
    await ours.child.stop();
  }
}

async function timeReads(application: LiveApplication): Promise<number[]> {
  const times: number[] = [];
  while (times.length < SAMPLES) times.push(await application.read());
  return times;
}

/** Changes an application as soon as all its clients have heard of the change before. */
async function whileBroadcasting<T>(application: LiveApplication, clients: LiveClients, act: () => Promise<T>): Promise<T> {
  let isOver = false;
  const broadcasting = (async () => {
    while (!isOver) {
      const { reached } = await clients.expect(SOCKETS);
      await application.change();
      await reached;
    }
  })();
  const acted = await act();
  isOver = true;
  await broadcasting;
  return acted;
}
