import { connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { afterAll, expect, it } from 'vitest';
import { openTcpProxy } from '../testing/databases.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startTcpServer } from '../testing/servers.ts';
import { waitForDatabase } from './database-wait.ts';

const database = await openEmptyDatabase(afterAll);

async function open() {
  const proxy = await openTcpProxy(database.url);
  const { logger, lines } = memoryLogger();
  const wait = (url = proxy.url, options: { waitMsMax?: number; signal?: AbortSignal } = {}) =>
    waitForDatabase(url, { logger, ...options });
  const waits = () => eventually(() => expect(lines).toMatchObject([{ level: 40, msg: 'waiting for the database' }]));
  return { proxy, lines, wait, waits };
}

it.each(['cut', 'freeze'] as const)('waits for a database that is down (%s), and logs that once', async (fault) => {
  const { wait, lines, waits, proxy } = await open();
  await proxy[fault]();
  const waiting = wait();
  await waits();
  await proxy.restore();
  await waiting;
  expect(lines).toHaveLength(1);
});

it('waits for the server behind a pooler that accepts connections without it', async () => {
  const { wait, waits, proxy } = await open();
  let isServerUp = false;
  const { hostname, port } = new URL(proxy.url);
  const pooler = await startTcpServer((socket) => {
    const upstream = connect(Number(port), hostname).on('error', () => undefined);
    socket.on('close', () => upstream.destroy());
    upstream.pipe(socket);
    // A query begins with this letter.
    socket.on('data', (bytes) => (isServerUp || bytes[0] !== 'Q'.charCodeAt(0)) && upstream.write(bytes));
  });
  const waiting = wait(Object.assign(new URL(proxy.url), { host: `127.0.0.1:${pooler.port}` }).href);
  await waits();
  isServerUp = true;
  await waiting;
});

it.each([
  ['password', { password: 'wrong' }, '28P01'],
  ['database', { pathname: '/no_such_database' }, '3D000'],
])('fails immediately for a wrong %s', async (_what, wrong, code) => {
  const { wait, lines, proxy } = await open();
  await expect(wait(Object.assign(new URL(proxy.url), wrong).href)).rejects.toMatchObject({ code });
  expect(lines).toEqual([]);
});

it('gives up after its time limit, and immediately when it is aborted', async () => {
  const { wait, proxy } = await open();
  await proxy.cut();
  await wait(proxy.url, { waitMsMax: 300 });
  const stopping = new AbortController();
  const waiting = wait(proxy.url, { signal: stopping.signal });
  stopping.abort();
  await waiting;
});
