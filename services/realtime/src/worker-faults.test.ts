import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from '@latchkey/kit/redis';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, it, onTestFinished } from 'vitest';
import { FakeApps } from './testing/fake-apps.ts';
import { startNode, startRelay } from './testing/test-node.ts';

const DOOMED = fileURLToPath(new URL('./testing/doomed-worker-process.ts', import.meta.url));
const EVENTS_MAX = 100;
/** A look a second, and what the look and the machine take. */
const HEARD_MS_MAX = 2_000;

/** Promises R6: the worker that has taken an event from the queue dies with it, and clients of other nodes hear of it all the same, in time. */
it('an event whose worker is killed before it has told anybody is heard on every node, in order, in time', {
  timeout: 60_000,
}, async () => {
  const [apps, { url }] = [new FakeApps(), await testRedis()];
  const application = apps.create();
  const doomed = spawn(process.execPath, [DOOMED, url], { stdio: ['ignore', 'ignore', 'inherit'] });
  onTestFinished(() => void doomed.kill('SIGKILL'));
  const exited = once(doomed, 'exit');
  // The job that comes first is then its own.
  await eventually(() => waitsForJobs(url), { timeoutMs: 15_000 });
  const nodes = await Promise.all([startNode(apps, url), startNode(apps, url)]);
  const clients = nodes.map((node) => node.connect(application.socketKey));
  await Promise.all(clients.map((client) => client.ready()));
  const relay = startRelay(url);
  // The nodes work on the queue as well: one of the events is the doomed one's.
  while (doomed.signalCode === null && application.lastSequence < EVENTS_MAX) {
    await relay.relay(application, apps.logVersion(application));
    await eventually(
      () => doomed.signalCode !== null || clients.every((client) => client.sequences().at(-1) === application.lastSequence),
    );
  }
  const killedAt = performance.now();
  expect(await exited).toEqual([null, 'SIGKILL']);
  const all = Array.from({ length: application.lastSequence }, (_, i) => i + 1);
  await eventually(() => {
    for (const client of clients) expect(client.sequences()).toEqual(all);
  });
  expect(performance.now() - killedAt).toBeLessThan(HEARD_MS_MAX);
});

/** Whether somebody waits for a job in the numbered database of a URL. */
async function waitsForJobs(url: string): Promise<boolean> {
  const redis = new Redis(url);
  try {
    const ofDatabase = ` db=${new URL(url).pathname.slice(1)} `;
    const clients = String(await redis.client('LIST')).split('\n');
    return clients.some((client) => client.includes(ofDatabase) && client.includes(' cmd=bzpopmin '));
  } finally {
    redis.disconnect();
  }
}
