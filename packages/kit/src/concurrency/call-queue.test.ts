import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CallQueue } from './call-queue.ts';

const LIMITS = { concurrency: 4, concurrencyPerKey: 2, size: 10, sizePerKey: 5, waitMs: 4_000 };
const METADATA = { policy: 'waiting-requests', limit: '5', windowSeconds: '4', remaining: '0', retryAfterSeconds: '1' };
const FULL = { reason: 'queue_full', httpStatus: 429, metadata: METADATA };
const LATE = { reason: 'dependency_unavailable' };

let queue: CallQueue;
let begun: string[];
let gate: PromiseWithResolvers<void>;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  queue = new CallQueue(LIMITS);
  begun = [];
  gate = Promise.withResolvers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Calls that end when the gate opens. */
function run(count: number, key: string): Array<Promise<void>> {
  return Array.from({ length: count }, () => {
    queue.check(key);
    return queue.run(key, () => {
      begun.push(key);
      return gate.promise;
    });
  });
}

it('makes calls of one key wait for each other only', async () => {
  const calls = [...run(5, 'many'), ...run(1, 'one')];
  await nextTurn();
  expect(begun).toEqual(['many', 'many', 'one']);
  gate.resolve();
  await Promise.all(calls);
  expect(begun).toHaveLength(6);
});

it('limits concurrent calls of all keys', async () => {
  const calls = ['a', 'b', 'c'].flatMap((key) => run(2, key));
  await nextTurn();
  expect(begun).toEqual(['a', 'a', 'b', 'b']);
  gate.resolve();
  await Promise.all(calls);
  expect(begun).toHaveLength(6);
});

it('rejects calls with 429 and its limit while it is full, for a key or in all', async () => {
  const calls = run(5, 'a');
  expect(() => queue.check('a')).toThrow(expect.objectContaining(FULL));
  calls.push(...run(5, 'b'));
  expect(() => queue.check('c')).toThrow(expect.objectContaining(FULL));
  gate.resolve();
  await Promise.all(calls);
  await Promise.all([...run(5, 'a'), ...run(5, 'c')]);
  expect(begun).toHaveLength(20);
});

it('rejects calls that waited too long as unavailable', async () => {
  const calls = run(5, 'a');
  const lates = calls.slice(2).map((call) => expect(call).rejects.toMatchObject(LATE));
  await nextTurn();
  vi.advanceTimersByTime(LIMITS.waitMs - 1);
  const fresh = run(1, 'b');
  vi.advanceTimersByTime(1);
  gate.resolve();
  await Promise.all([...calls.slice(0, 2), ...lates, ...fresh]);
  expect(begun).toEqual(['a', 'a', 'b']);
});
