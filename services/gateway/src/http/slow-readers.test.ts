import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { runTransfer, trackConnections } from '@latchkey/kit/http/connections';
import { memoryLogger } from '@latchkey/kit/testing/memory-logger';
import { startNodeServer } from '@latchkey/kit/testing/servers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { closeSlowReaders, ReadingPace } from './slow-readers.ts';

const KIB = 1024;

describe('the pace of a reader', () => {
  /** The first slow second for these KiB per second, repeated; undefined for none in 300. */
  const closedAfter = (...kib: number[]) => {
    const pace = new ReadingPace();
    for (let s = 0; s < 300; s += 1) if (pace.isTooSlow((kib[s % kib.length] as number) * KIB, 1_000)) return s + 1;
    return undefined;
  };

  it.each([
    ['that reads nothing', [0], 10],
    ['at half the lowest rate', [8], 20],
    ['at the lowest rate', [16], undefined],
    ['at the lowest rate, unevenly', [0, 0, 0, 48, 32], undefined],
    ['in bursts, as the system reports them', [...Array<number>(8).fill(0), 1_472], undefined],
  ])('%s', (_, kib, seconds) => {
    expect(closedAfter(...kib)).toBe(seconds);
  });

  it('is too slow in a pause, whatever was read before it', () => {
    const pace = new ReadingPace();
    expect(pace.isTooSlow(4_000 * KIB, 1_000)).toBe(false);
    const seconds = Array.from({ length: 10 }, () => pace.isTooSlow(0, 1_000));
    expect(seconds).toEqual([...Array(9).fill(false), true]);
  });
});

/** Fills the buffers of the kernel, and lets some more bytes wait in this process. */
async function fill(res: ServerResponse, unreadKib: number): Promise<void> {
  const write = (byteSize: number) => new Promise((resolve) => res.write(Buffer.alloc(byteSize), resolve));
  let isFull = false;
  while (!isFull) isFull = await Promise.race([write(64 * KIB).then(() => false), delay(500, true)]);
  void write(unreadKib * KIB);
}

it.each([
  ['of a file is closed', true, 0, 1, true],
  ['of a large response is closed', false, 512, 1, true],
  ['of several responses is closed', false, 0, 10, true],
  ['of a small response stays', false, 16, 1, false],
] as const)('a connection that leaves the rest %s', async (_, isFile, unreadKib, requests, isClosed) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const filled = Promise.withResolvers<void>();
  let begun = 0;
  const { logger, messages } = memoryLogger();
  let connections: ReturnType<typeof trackConnections> | undefined;
  const onRequest: RequestListener = (req, res) => {
    begun += 1;
    if (begun > 1) return void res.end(Buffer.alloc(16 * KIB));
    if (isFile) void runTransfer(req.socket, () => once(res, 'close'));
    fill(res, unreadKib).then(filled.resolve, filled.reject);
  };
  const { open } = await startNodeServer(onRequest, (server) => {
    connections = trackConnections(server);
    closeSlowReaders(server, connections, logger);
  });
  const { socket } = await open();
  socket.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests));
  await filled.promise;
  vi.advanceTimersByTime(11_000);
  expect([...(connections ?? [])].some((connection) => !connection.destroyed)).toBe(!isClosed);
  expect(messages()).toEqual(isClosed ? ['connection closed: the client reads too slowly'] : []);
});
