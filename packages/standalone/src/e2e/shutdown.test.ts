import { Agent, request as httpRequest } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createApplication, createKey, type Key, signUp } from '../testing/caller.ts';
import { type OwnInstance, startInstanceForTest } from '../testing/own-instance.ts';
import { openSocket } from '../testing/raw-request.ts';

interface Outcome {
  readonly sentAt: number;
  readonly endedAt: number;
  /** The status, or the code of the error. */
  readonly result: number | string;
  /** Whether the request went out on a connection that had been used before. */
  readonly reused: boolean;
}

/** Sends one request and says how it ended. */
function send(instance: OwnInstance, key: Key, agent: Agent, method: string, path: string, body?: object): Promise<Outcome> {
  const headers = { authorization: `Bearer ${key.text}`, ...(body && { 'content-type': 'application/json' }) };
  return new Promise((resolve) => {
    const req = httpRequest({ host: '127.0.0.1', port: instance.port, method, path, agent, headers });
    const sentAt = performance.now();
    const end = (result: number | string) => resolve({ sentAt, endedAt: performance.now(), result, reused: req.reusedSocket });
    req.on('error', (err: NodeJS.ErrnoException) => end(err.code ?? err.message));
    req.on('response', (res) => {
      res.on('error', (err: NodeJS.ErrnoException) => end(err.code ?? err.message));
      res.on('end', () => end(res.complete ? (res.statusCode ?? 0) : 'incomplete')).resume();
    });
    req.end(body && JSON.stringify(body));
  });
}

const PATH = '/api/v1/panel/get-application-settings';

it('SIGTERM under load: no accepted request fails, and everything ends with code 0', async () => {
  const instance = await startInstanceForTest();
  const owner = await signUp(instance.api);
  const key = await createKey(owner);
  const applicationId = await createApplication(key.api);
  const outcomes: Outcome[] = [];
  let stopped = false;
  const worker = async (agent: Agent, write: boolean) => {
    while (!stopped) {
      const outcome = write
        ? await send(instance, key, agent, 'PATCH', `/api/v1/panel/update-application-settings?applicationId=${applicationId}`, {
            field: 'version',
            value: String(outcomes.length),
          })
        : await send(instance, key, agent, 'GET', `${PATH}?applicationId=${applicationId}`);
      outcomes.push(outcome);
      if (outcome.result === 'ECONNREFUSED') return;
    }
  };
  const keepAlive = new Agent({ keepAlive: true });
  const oneEach = new Agent({ keepAlive: false });
  const workers = Array.from({ length: 16 }, (_, i) => worker(i % 4 ? keepAlive : oneEach, i % 8 < 4));
  await eventually(() => outcomes.length > 300, { timeoutMs: 20_000 });
  const signalAt = performance.now();
  const stopping = instance.stop();
  expect(await instance.exited).toBe(0);
  stopped = true;
  await Promise.all([stopping, ...workers]);
  keepAlive.destroy();

  // The system takes connections in before the process accepts them, in order; those that still wait when it ceases to listen are reset.
  // Nobody accepted such a one if none that was opened later has been answered.
  const acceptedLast = Math.max(
    ...outcomes.filter(({ result, reused }) => result === 200 && !reused).map(({ sentAt }) => sentAt),
  );
  const isUnaccepted = ({ result, reused, sentAt }: Outcome) => result === 'ECONNRESET' && !reused && sentAt > acceptedLast;
  const failed = outcomes.filter((outcome) => ![200, 'ECONNREFUSED'].includes(outcome.result) && !isUnaccepted(outcome));
  const describeOutcome = ({ sentAt, endedAt, result, reused }: Outcome) =>
    `${result} sent ${(sentAt - signalAt).toFixed(1)} ms, ended ${(endedAt - signalAt).toFixed(1)} ms after the signal${reused ? ', reused' : ''}`;
  expect(failed.map(describeOutcome)).toEqual([]);
  expect(outcomes.filter(({ result }) => result === 200).length).toBeGreaterThan(300);
});

it('SIGTERM ends everything soon, though clients hold connections that they do not use', async () => {
  const instance = await startInstanceForTest();
  const sockets = await Promise.all(Array.from({ length: 3 }, () => openSocket(instance.port)));
  sockets[1]?.write('GET /healthz HTTP/1.1\r\nHost:');
  sockets[2]?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await instance.api.get('/nowhere');
  const startedAt = performance.now();
  await instance.stop();
  expect(await instance.exited).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  for (const socket of sockets) socket.destroy();
});
