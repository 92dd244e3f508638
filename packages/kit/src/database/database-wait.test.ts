import { connect } from 'node:net';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startTcpServer } from '../testing/servers.ts';
import { untilDatabaseAnswers } from './database-wait.ts';

async function open() {
  const database = await createEmptyTestDatabase();
  const proxy = await startTcpProxy(database.url);
  onTestFinished(async () => {
    await proxy.close();
    await database.drop();
  });
  const { logger, lines } = memoryLogger();
  const wait = (url = proxy.url, options: { signal?: AbortSignal; waitMsMax?: number } = {}) =>
    untilDatabaseAnswers(url, { logger, signal: new AbortController().signal, ...options });
  return { proxy, lines, wait };
}

it('does not wait for a database that answers', async () => {
  const { wait, lines } = await open();
  await wait();
  expect(lines).toEqual([]);
});

it.each(['cut', 'freeze'] as const)('waits for one that is away (%s) until it is there, and says so once', async (fault) => {
  const { wait, lines, proxy } = await open();
  await proxy[fault]();
  let isOver = false;
  const waiting = wait().then(() => {
    isOver = true;
  });
  await eventually(() => expect(lines).toMatchObject([{ level: 40, msg: 'waiting for the database' }]));
  expect(isOver).toBe(false);
  await proxy.restore();
  await waiting;
  expect(lines).toHaveLength(1);
});

it('does not take a connection for an answer: it waits for one behind a pooler that takes those all the same', async () => {
  const { wait, lines, proxy } = await open();
  let isServerThere = false;
  const { hostname, port } = new URL(proxy.url);
  const pooler = await startTcpServer((socket) => {
    const upstream = connect(Number(port), hostname).on('error', () => undefined);
    socket.on('close', () => upstream.destroy());
    upstream.pipe(socket);
    // A query begins with this letter.
    socket.on('data', (bytes) => (isServerThere || bytes[0] !== 'Q'.charCodeAt(0)) && upstream.write(bytes));
  });
  const url = new URL(proxy.url);
  url.host = `127.0.0.1:${pooler.port}`;
  const waiting = wait(url.href);
  await eventually(() => expect(lines).toMatchObject([{ level: 40, msg: 'waiting for the database' }]));
  isServerThere = true;
  await waiting;
});

it('does not wait for what does not get better: a wrong password, or a database that is none', async () => {
  const { wait, lines, proxy } = await open();
  const password = new URL(proxy.url);
  password.password = 'wrong';
  const name = new URL(proxy.url);
  name.pathname = '/no_such_database';
  await expect(wait(password.href)).rejects.toMatchObject({ code: '28P01' });
  await expect(wait(name.href)).rejects.toMatchObject({ code: '3D000' });
  expect(lines).toEqual([]);
});

it('gives up when its time is over, and at once when it is told to', async () => {
  const { wait, proxy } = await open();
  await proxy.cut();
  await wait(proxy.url, { waitMsMax: 600 });
  const stopping = new AbortController();
  const waiting = wait(proxy.url, { signal: stopping.signal });
  stopping.abort();
  await waiting;
});
