import { createLiveApplications, type LiveApplication } from './live-application.ts';
import { LiveClients } from './live-clients.ts';
import { type Servers, type Shape, startOurs } from './ours.ts';
import { type Figure, median, percentile } from './report.ts';

const EVENTS = 200;
const WARM_UPS = 20;

/** F7: from asking for a change to its receipt by one idle client. */
export async function measureLiveLatency(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const clients = new LiveClients();
  try {
    const application = await holdOne(ours, clients);
    await timeReceipts(application, clients, WARM_UPS);
    const times = await timeReceipts(application, clients, EVENTS);
    return {
      id: 'F7',
      what: `PATCH to receipt by one client, ${shape}`,
      value: `${median(times).toFixed(1)} ms`,
      baseline: '',
      result: `99 % within ${percentile(times, 0.99).toFixed(1)} ms`,
      goal: '≤ 20 ms',
    };
  } finally {
    clients.stop();
    await ours.child.stop();
  }
}

/** Opens one connection to an application of its own. */
export async function holdOne(side: { baseUrl: string; livePort: number }, clients: LiveClients): Promise<LiveApplication> {
  const [application] = await createLiveApplications(side.baseUrl);
  if (!application) throw new Error('There is no application');
  const { reached } = await clients.expect(1);
  await clients.open(side.livePort, [application.request()], 1);
  await reached;
  return application;
}

/** Changes an application that one client is connected to over and over; from asking to receipt, in milliseconds. */
export async function timeReceipts(application: LiveApplication, clients: LiveClients, count: number): Promise<number[]> {
  const times: number[] = [];
  while (times.length < count) {
    const { reached } = await clients.expect(1);
    const { askedAt } = await application.change();
    times.push((await reached).at - askedAt);
  }
  return times;
}
