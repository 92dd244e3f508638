import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { memoryLogger } from '@latchkey/kit/testing/memory-logger';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';
import { ReadingPace } from './downloads.ts';

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

  it('is not too slow while the server is slower', () => {
    const pace = new ReadingPace();
    for (let s = 0; s < 100; s += 1) {
      if (s % 9 === 0) pace.catchUp();
      expect(pace.isTooSlow(0, 1_000)).toBe(false);
    }
  });
});

describe('a download', () => {
  const { logger, lines } = memoryLogger();
  const begun: Array<{ readonly token: string; readonly network: string; readonly res: ServerResponse }> = [];
  const gateway = useTestGateway({
    env: { TRUSTED_PROXIES: 'loopback' },
    logger,
    filesData: {
      download: async (req: IncomingMessage, res: ServerResponse, _id: string, network: string) => {
        begun.push({ token: String(req.url).slice('/downloads/'.length), network, res });
        const fill = () => {
          while (!res.destroyed && res.write(Buffer.alloc(64 * KIB)));
        };
        if (req.url === '/downloads/endless') res.on('drain', fill).write('begin', fill);
        await once(res, 'close');
      },
    },
  });
  const headOf = (token: string) => `GET /downloads/${token} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 2001:db8::1\r\n\r\n`;

  it('that its client does not read is closed, and counts for the network of the client', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { socket, ended } = await openRawClient(gateway.port);
    socket.pause().write(headOf('endless'));
    let before = -1;
    await eventually(() => {
      const sent = begun[0]?.res.socket?.bytesWritten ?? 0;
      const isFull = sent > 0 && sent === before;
      before = sent;
      return isFull;
    });
    expect(begun[0]?.network).toBe('2001:db8:0:0::/64');
    vi.advanceTimersByTime(11_000);
    socket.resume();
    expect(await ended).toBe('ECONNRESET');
    expect(lines.map(({ msg }) => msg)).toContain('download closed: the client reads too slowly');
  });

  it('that is pipelined begins once those before it have ended', async () => {
    const { socket, received } = await openRawClient(gateway.port);
    socket.write(headOf('first') + headOf('second'));
    await eventually(() => begun.at(-1)?.token === 'first');
    const { body } = await fetch(`${gateway.baseUrl}/healthz`);
    await body?.cancel();
    expect(begun.at(-1)?.token).toBe('first');
    begun.at(-1)?.res.end('one');
    await eventually(() => begun.at(-1)?.token === 'second');
    begun.at(-1)?.res.end('two');
    await eventually(() => expect(received()).toMatch(/one.*HTTP\/1\.1 200.*two/s));
  });
});
