import { LatchkeyError } from '@latchkey/client';
import { afterEach, expect, it, vi } from 'vitest';
import { createUploadQueue, type IfTaken, type QueueEnvironment } from './upload-queue.ts';

afterEach(() => vi.useRealTimers());

/** A queue whose uploads end when the test says so. */
function setUp(environment: Partial<QueueEnvironment> = {}) {
  const sent: Array<{
    readonly name: string;
    readonly ifTaken: IfTaken;
    readonly signal: AbortSignal;
    readonly end: PromiseWithResolvers<{ checksum: string }>;
  }> = [];
  const queue = createUploadQueue({
    findSizeError: () => undefined,
    isNameFree: async () => true,
    send: ({ name, ifTaken }, { signal }) => {
      const end = Promise.withResolvers<{ checksum: string }>();
      sent.push({ name, ifTaken, signal, end });
      return end.promise;
    },
    onStored: () => undefined,
    onError: () => undefined,
    ...environment,
  });
  const kinds = () => queue.getSnapshot().uploads.map(({ state }) => state.kind);
  return { queue, sent, kinds };
}

const files = (...names: string[]) => names.map((name) => new File(['x'], name));

it('uploads one file after the other, and goes on after one was cancelled', async () => {
  const { queue, sent, kinds } = setUp();
  queue.add('app', files('a.txt', 'b.txt', 'c.txt'));
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  expect(kinds()).toEqual(['running', 'waiting', 'waiting']);
  queue.cancel(1);
  expect(sent[0]?.signal.aborted).toBe(true);
  sent[0]?.end.reject(new Error('aborted'));
  await vi.waitFor(() => expect(sent).toHaveLength(2));
  sent[1]?.end.resolve({ checksum: '00' });
  await vi.waitFor(() => expect(kinds()).toEqual(['cancelled', 'done', 'running']));
});

it('waits as long as the rate limit says, then goes on by itself', async () => {
  vi.useFakeTimers();
  const { queue, sent, kinds } = setUp();
  queue.add('app', files('a.txt'));
  await vi.advanceTimersByTimeAsync(0);
  sent[0]?.end.reject(new LatchkeyError('Too many requests', { code: 'rate_limit_reached', status: 429, retryAfterSeconds: 30 }));
  await vi.advanceTimersByTimeAsync(29_000);
  expect([kinds(), sent.length]).toEqual([['waiting'], 1]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([kinds(), sent.length]).toEqual([['running'], 2]);
});

it('asks for another name where one is invalid or taken, without an upload', async () => {
  const { queue, sent, kinds } = setUp({ isNameFree: async (_applicationId, name) => name !== 'taken.txt' });
  queue.add('app', files('taken.txt', 'a name that is too long.txt'));
  await vi.waitFor(() => expect(kinds()).toEqual(['name', 'name']));
  expect(sent).toEqual([]);
  queue.start(1, { name: 'free.txt' });
  await vi.waitFor(() => expect(sent.map(({ name }) => name)).toEqual(['free.txt']));
});

it('replaces a file whose name is taken, or keeps both under the next free number', async () => {
  const taken = ['a.txt', 'b.txt', 'b-2.txt'];
  const { queue, sent, kinds } = setUp({ isNameFree: async (_applicationId, name) => !taken.includes(name) });
  queue.add('app', files('a.txt', 'b.txt'));
  await vi.waitFor(() => expect(kinds()).toEqual(['name', 'name']));
  queue.start(1, { ifTaken: 'replace' });
  queue.start(2, { ifTaken: 'number' });
  await vi.waitFor(() => expect(sent).toMatchObject([{ name: 'a.txt', ifTaken: 'replace' }]));
  sent[0]?.end.resolve({ checksum: '00' });
  await vi.waitFor(() => expect(sent[1]).toMatchObject({ name: 'b-3.txt', ifTaken: 'number' }));
  expect(queue.getSnapshot().uploads.map(({ name }) => name)).toEqual(['a.txt', 'b-3.txt']);
});

it('tries a replacement again as such, and asks again where a release needs the file', async () => {
  const { queue, sent, kinds } = setUp({ isNameFree: async () => false });
  queue.add('app', files('a.txt'));
  await vi.waitFor(() => expect(kinds()).toEqual(['name']));
  queue.start(1, { ifTaken: 'replace' });
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  sent[0]?.end.reject(new Error('cut'));
  await vi.waitFor(() => expect(kinds()).toEqual(['failed']));
  queue.start(1);
  await vi.waitFor(() => expect(sent).toMatchObject([{}, { ifTaken: 'replace' }]));
  sent[1]?.end.reject(new LatchkeyError('A published release needs the file', { code: 'file_in_use', status: 409 }));
  await vi.waitFor(() => expect(queue.getSnapshot().uploads).toMatchObject([{ state: { kind: 'name', isTaken: true } }]));
});

it('rejects a file of a wrong size when it is added, and clears it with those that ended', async () => {
  const error = new LatchkeyError('Too large', { code: 'invalid_file', details: [{ path: 'file', message: 'too large' }] });
  const { queue, sent, kinds } = setUp({ findSizeError: ({ name }) => (name === 'large.bin' ? error : undefined) });
  queue.add('app', files('fits.bin', 'large.bin'));
  expect(kinds()).toEqual(['running', 'failed']);
  queue.removeEnded('app');
  expect(kinds()).toEqual(['running']);
  expect(sent).toHaveLength(0);
});
