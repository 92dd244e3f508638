import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openTcp } from '../testing/http2.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startAdminListener } from './admin-listener.ts';
import { cachedReadiness } from './probes.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';
const exposition = { contentType: 'text/plain; version=0.0.4', render: async () => 'latchkey_up 1\n' };

async function start() {
  let problem: Error | undefined;
  const checkReady = async () => {
    if (problem) throw problem;
  };
  const server = await startAdminListener({ host: '127.0.0.1', port: 0, token: TOKEN }, exposition, checkReady);
  onTestFinished(() => server.stop());
  const url = `http://127.0.0.1:${server.port}`;
  const setProblem = (next: Error) => {
    problem = next;
  };
  const status = async (path: string, method = 'GET', headers = {}) => (await fetch(url + path, { method, headers })).status;
  return { url, status, setProblem };
}

it('serves only probes, and metrics with the token', async () => {
  const { url, status } = await start();
  const headers = { authorization: `Bearer ${TOKEN}` };
  const metrics = await fetch(`${url}/metrics`, { headers });
  expect([metrics.headers.get('content-type'), await metrics.text()]).toEqual(['text/plain; version=0.0.4', 'latchkey_up 1\n']);
  expect(await (await fetch(`${url}/metrics`, { method: 'HEAD', headers })).text()).toBe('');
  expect([await status('/', 'GET', headers), await status('/metrics', 'POST', headers)]).toEqual([404, 405]);
  for (const path of ['/', '/metrics']) {
    for (const authorization of ['', 'Bearer', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`])
      expect(await status(path, 'GET', { authorization })).toBe(401);
    expect((await fetch(url + path)).headers.get('www-authenticate')).toBe('Bearer');
  }
});

it('serves probes to anyone', async () => {
  const { status, setProblem } = await start();
  expect([await status('/healthz'), await status('/readyz'), await status('/readyz', 'POST')]).toEqual([200, 200, 405]);
  setProblem(new Error('no database'));
  expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503]);
});

it('accepts few connections of one address, and serves others', async () => {
  const { url, status } = await start();
  const sockets = Array.from({ length: 30 }, () => openTcp(url, '127.0.0.2'));
  await eventually(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(10));
  expect(await status('/healthz')).toBe(200);
});

it('readiness is checked once for concurrent callers, and logged when its reason changes', async () => {
  const { logger, lines } = memoryLogger();
  const problems = [new Error('no database'), new Error('no database'), new Error('no Redis'), undefined, undefined];
  let checks = 0;
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const check = cachedReadiness(async () => {
    const problem = problems[checks];
    checks += 1;
    if (problem) throw problem;
  }, logger);
  for (const problem of problems) {
    const results = await Promise.allSettled([check(), check(), check()]);
    expect(results.map(({ status }) => status)).toEqual(Array(3).fill(problem ? 'rejected' : 'fulfilled'));
    nowMs += 250;
  }
  expect(checks).toBe(problems.length);
  expect(lines).toMatchObject([
    { level: 40, msg: 'not ready', err: { message: 'no database' } },
    { level: 40, msg: 'not ready', err: { message: 'no Redis' } },
    { level: 30, msg: 'ready again' },
  ]);
});
