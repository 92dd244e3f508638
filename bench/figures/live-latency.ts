import { createLiveApplication } from '../harness/live-application.ts';
import { LiveClients } from '../harness/live-clients.ts';
import { type Servers, type Shape, startOurs } from '../harness/ours.ts';
import { type Figure, median, percentile } from '../harness/report.ts';

const EVENTS = 200;
const WARM_UPS = 20;

/** F7: from the request of a change to its receipt by one idle client. */
export async function measureLiveLatency(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const clients = servers.stops.use(new LiveClients());
  const application = await createLiveApplication(ours.baseUrl);
  await clients.openAll(ours.livePort, application.request, 1);
  const times: number[] = [];
  while (times.length < WARM_UPS + EVENTS) {
    const { reached } = await clients.expect(1);
    const { requestedAt } = await application.change();
    times.push((await reached).at - requestedAt);
  }
  const counted = times.slice(WARM_UPS);
  return {
    id: 'F7',
    what: `PATCH to receipt by one client, ${shape}`,
    value: `${median(counted).toFixed(1)} ms`,
    result: `99 % within ${percentile(counted, 0.99).toFixed(1)} ms`,
    goal: '≤ 20 ms',
  };
}
