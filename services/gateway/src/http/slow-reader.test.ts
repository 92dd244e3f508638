import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/raw-client';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type DataPathKind, startUploadGateway } from '../testing/upload-gateway.ts';
import { ReadingPace } from './slow-reader.ts';

const KIB = 1024;
/** More than the buffers of two connections hold. */
const BIG = 64 * KIB * KIB;

describe('the pace of a reader', () => {
  /** The second in which it is found too slow, where it takes so many KiB a second, repeated; undefined if never within five minutes. */
  const closedAfter = (...kib: number[]) => {
    const pace = new ReadingPace();
    for (let s = 0; s < 300; s += 1) if (pace.isTooSlow((kib[s % kib.length] as number) * KIB, 1_000)) return s + 1;
    return undefined;
  };
  const burst = (kib: number, everySeconds: number) => closedAfter(...Array<number>(everySeconds - 1).fill(0), kib);

  it.each([
    ['takes nothing', [0], 10],
    ['takes half of what it has to', [8], 20],
    ['takes what it has to', [16], undefined],
    ['takes it unevenly', [0, 0, 0, 48, 32], undefined],
  ])('that %s', (_what, kib, seconds) => {
    expect(closedAfter(...kib)).toBe(seconds);
  });

  it('is forgiven a pause for what is taken after it, and not for what was taken before', () => {
    expect(burst(1_472, 9)).toBeUndefined();
    const pace = new ReadingPace();
    const next = (kib: number) => pace.isTooSlow(kib * KIB, 1_000);
    expect(next(4_000)).toBe(false);
    const seconds = Array.from({ length: 10 }, () => next(0));
    expect(seconds).toEqual([...Array(9).fill(false), true]);
  });

  it('is not slow while there is nothing more to take', () => {
    const pace = new ReadingPace();
    for (let s = 0; s < 100; s += 1) {
      if (s % 9 === 0) pace.catchUp();
      expect(pace.isTooSlow(0, 1_000)).toBe(false);
    }
  });
});

describe.each<DataPathKind>(['direct', 'remote'])('a download that is passed on %s', (kind) => {
  let open: ServerResponse[];
  let networks: string[];
  /** Answers with all of a body as fast as it is read, or with a few bytes and no more for a while. */
  const download = async (req: IncomingMessage, res: ServerResponse, _id: string, clientNetwork: string): Promise<void> => {
    open.push(res);
    networks.push(clientNetwork);
    res.writeHead(200, { 'content-length': BIG });
    if (req.url?.endsWith('waits')) res.write('x');
    else
      for (let left = BIG; left > 0 && !res.destroyed; left -= KIB * KIB) {
        if (!res.write(Buffer.alloc(KIB * KIB))) await Promise.race([once(res, 'drain'), once(res, 'close')]);
      }
    if (!res.closed) await once(res, 'close');
  };

  beforeEach(() => {
    [open, networks] = [[], []];
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  async function ask(name: string): Promise<RawClient> {
    const gateway = await startUploadGateway(kind, { download });
    onTestFinished(() => gateway.stop());
    const client = await openRawClient(gateway.port);
    client.socket.pause();
    client.socket.write(`GET /downloads/${name} HTTP/1.1\r\nHost: x\r\nX-Client-Network: another\r\n\r\n`);
    await eventually(() => open.length === 1);
    return client;
  }

  it('is closed at both ends where the client reads nothing for ten seconds', async () => {
    const { socket } = await ask('big');
    await eventually(() => {
      vi.advanceTimersByTime(1_000);
      return open[0]?.closed === true;
    });
    socket.resume();
    await eventually(() => socket.closed);
    expect(socket.bytesRead).toBeLessThan(BIG);
  });

  it('is not closed for what the server is slow in', async () => {
    const { socket, received } = await ask('waits');
    socket.resume();
    await eventually(() => received().endsWith('x'));
    vi.advanceTimersByTime(60_000);
    open[0]?.write('y');
    await eventually(() => received().endsWith('y'));
    socket.destroy();
    await eventually(() => open[0]?.closed === true);
  });

  it('is counted for the network of its client, whatever that claims', async () => {
    const { socket } = await ask('waits');
    expect(networks).toEqual(['127.0.0.1']);
    socket.destroy();
    await eventually(() => open[0]?.closed === true);
  });
});
