import { Agent, request as httpRequest } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { startInstanceForTest } from '../testing/own-instance.ts';
import { openSocket } from '../testing/raw-request.ts';

interface Outcome {
  readonly sentAt: number;
  /** The status, or the code of the error. */
  readonly result: number | string;
  /** Whether the connection had been used before. */
  readonly reused: boolean;
}

/** Sends one request and records how it ended. */
function send(url: string, agent: Agent, headers: Record<string, string>, body?: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const req = httpRequest(url, {
      method: body ? 'PATCH' : 'GET',
      agent,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    });
    const sentAt = performance.now();
    const end = (result: number | string) => resolve({ sentAt, result, reused: req.reusedSocket });
    const fail = (err: NodeJS.ErrnoException) => end(err.code ?? err.message);
    req.on('error', fail);
    req.on('response', (res) =>
      res
        .on('error', fail)
        .on('end', () => end(res.complete ? (res.statusCode ?? 0) : 'incomplete'))
        .resume(),
    );
    req.end(body);
  });
}

it('SIGTERM under load fails no accepted request, ends with code 0, and is not held up by unused connections', async () => {
  const instance = await startInstanceForTest();
  const { api } = await createKey(await signUp(instance.api));
  const query = `applicationId=${await createApplication(api)}`;
  const idle = await Promise.all(Array.from({ length: 3 }, () => openSocket(instance.port)));
  idle[1]?.write('GET /healthz HTTP/1.1\r\nHost:');
  idle[2]?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  const outcomes: Outcome[] = [];
  const agents = [new Agent({ keepAlive: false }), ...Array<Agent>(3).fill(new Agent({ keepAlive: true }))];
  const worker = async (i: number) => {
    const path = `${instance.baseUrl}/api/v1/panel/${i % 8 < 4 ? 'update' : 'get'}-application-settings?${query}`;
    for (let last: Outcome | undefined; last?.result !== 'ECONNREFUSED'; ) {
      const body = i % 8 < 4 ? JSON.stringify({ field: 'version', value: String(outcomes.length) }) : undefined;
      last = await send(path, agents[i % 4] as Agent, { ...api.headers }, body);
      outcomes.push(last);
    }
  };
  const workers = Array.from({ length: 16 }, (_, i) => worker(i));
  await eventually(() => outcomes.length > 300, { timeoutMs: 20_000 });
  const startedAt = performance.now();
  await instance.stop();
  expect([await instance.exited, performance.now() - startedAt < 15_000]).toEqual([0, true]);
  await Promise.all(workers);
  for (const agent of agents) agent.destroy();
  for (const socket of idle) socket.destroy();

  // Connections that the system had queued, and the process not accepted, are reset: none that was
  // opened later had a response.
  const answered = outcomes.filter(({ result, reused }) => result === 200 && !reused);
  const acceptedLast = Math.max(...answered.map(({ sentAt }) => sentAt));
  const isUnaccepted = ({ result, reused, sentAt }: Outcome) => result === 'ECONNRESET' && !reused && sentAt > acceptedLast;
  const failed = outcomes.filter((outcome) => ![200, 'ECONNREFUSED'].includes(outcome.result) && !isUnaccepted(outcome));
  expect(failed.map(({ result, reused, sentAt }) => [result, reused, sentAt - startedAt])).toEqual([]);
});
