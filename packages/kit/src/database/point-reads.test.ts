import { Socket } from 'node:net';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createDatabase, isDatabaseUnavailable } from './database.ts';
import { LANES, type PointReads } from './point-reads.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
});
afterAll(() => database.drop());

async function open() {
  const proxy = await startTcpProxy(database.url);
  onTestFinished(() => proxy.close());
  const opened = createDatabase<unknown>({ url: proxy.url, schema: 'public', logger: memoryLogger().logger });
  onTestFinished(() => opened.close());
  return { proxy, ...opened };
}

const NUMBERS = Array.from({ length: 64 }, (_, n) => n);
const read = (reads: PointReads, text: string, values: unknown[] = []) =>
  reads.query({ name: text, text, values }).then(({ rows }) => rows[0]?.n as unknown);
const readNumber = (reads: PointReads, n: number) => read(reads, 'select $1::int as n', [n]);
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it succeeded'),
    (err: unknown) => err,
  );

it('the reads of one turn share a write for each connection, and each gets its own rows', async () => {
  const { reads } = await open();
  await Promise.all([readNumber(reads, 0), readNumber(reads, 1)]);
  const writes = vi.spyOn(Socket.prototype, '_writev' as 'write');
  onTestFinished(() => writes.mockRestore());
  const answers = Promise.all(NUMBERS.map((n) => readNumber(reads, n)));
  await new Promise(setImmediate);
  expect(writes).toHaveBeenCalledTimes(LANES);
  expect(await answers).toEqual(NUMBERS);
});

it('a read that PostgreSQL rejects fails alone', async () => {
  const { reads } = await open();
  const answers = NUMBERS.map((n) => (n === 10 ? failure(read(reads, 'select 1 / 0 as n')) : readNumber(reads, n)));
  expect((await Promise.all(answers)).with(10, 10)).toEqual(NUMBERS);
  expect(await answers[10]).toMatchObject({ code: '22012' });
});

it('reads whose connection is lost are sent once more', async () => {
  const { proxy, reads } = await open();
  await Promise.all([readNumber(reads, 0), readNumber(reads, 1)]);
  proxy.loseAnswerTo('select $1');
  expect(await Promise.all(NUMBERS.map((n) => readNumber(reads, n)))).toEqual(NUMBERS);
});

it('a frozen database fails reads within 5 s as unavailable, and later ones find a new connection', async () => {
  const { proxy, reads } = await open();
  await Promise.all([readNumber(reads, 0), readNumber(reads, 1)]);
  proxy.freeze();
  const startedAt = performance.now();
  const errors = await Promise.all(NUMBERS.map((n) => failure(readNumber(reads, n))));
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(errors.every(isDatabaseUnavailable)).toBe(true);
  await proxy.restore();
  expect(await Promise.all(NUMBERS.map((n) => readNumber(reads, n)))).toEqual(NUMBERS);
});
