import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startNodeServer } from '@latchkey/kit/testing/servers';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { LogRequest } from '../event/event-log.ts';
import type { Frame } from '../frame/frame.ts';
import { Hub } from '../hub/hub.ts';
import { createWebSocketServer } from '../server.ts';
import { clientFrame, closeFrame, OPCODE, openRawSocket, type RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { range } from '../testing/test-node.ts';
import { LiveSocket } from './live-socket.ts';

const WAITING_BYTES_MAX = 256 * 1024;
const FRAME_BYTES = 4_096;
const PING_INTERVAL_MS = 30_000;
const UNREAD_MS_MAX = 10_000;

const frame = (sequence: number): Frame => ({
  epoch: 'e1',
  sequence,
  bytes: Buffer.from(`${sequence} `.padEnd(FRAME_BYTES, 'x')),
  isLast: false,
  at: 0,
});

/** A hub whose log holds events 1 to `logged`, and a function that opens sockets of it. */
async function startHub(logged = 0) {
  const readForClient = async ({ afterSequence: after }: LogRequest) =>
    range(after + 1, Math.min(after + 500, hub.cursor)).map(frame);
  const hub: Hub = new Hub(
    { applicationId: 'a', accountId: 'b', lastSequence: logged, epoch: 'e1', keyFingerprint: 'k' },
    { readForClient },
  );
  const webSockets = createWebSocketServer();
  const opened: Array<{ live: LiveSocket; ws: WebSocket; connection: Socket; codes: number[] }> = [];
  const onUpgrade = (req: IncomingMessage, socket: Duplex, head: Buffer) =>
    webSockets.handleUpgrade(req, socket, head, (ws) => {
      const connection = socket as Socket;
      const position = Number(req.headers['last-event-id'] ?? logged);
      const common = { ws, connection, source: hub, keyFingerprint: 'k', epoch: 'e1', verifiedAt: 0 };
      const live = new LiveSocket({ ...common, position, requestId: 'r' });
      const codes: number[] = [];
      live.onGone((code) => {
        hub.sockets.delete(live);
        codes.push(code);
      });
      opened.push({ live, ws, connection, codes });
      hub.sockets.add(live);
      live.start([]);
    });
  const { port } = await startNodeServer(
    () => undefined,
    (server) => server.on('upgrade', onUpgrade),
  );
  onTestFinished(() => opened.forEach(({ live }) => void live.cut()));
  const open = async (position = logged) => {
    const before = opened.length;
    const client = await openRawSocket(port, upgradeRequest('k', { 'Last-Event-ID': String(position) }));
    const side = await eventually(() => opened[before] ?? expect.fail('not opened yet'));
    return { client, ...side };
  };
  return { hub, open };
}

function fakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
}

const sequencesOf = (client: RawSocket) => client.payloads(OPCODE.text).map((text) => Number.parseInt(text, 10));

describe('a client that does not read', () => {
  beforeEach(fakeTimers);

  it('has 256 KiB buffered at most, delays no other client, and is closed with 4202 after 10 s', async () => {
    const { hub, open } = await startHub();
    const [idler, reader] = [await open(), await open()];
    idler.client.client.socket.pause();
    for (let sequence = 1; sequence <= 3_000; sequence += 1) {
      hub.accept(frame(sequence));
      await nextTurn();
      expect(idler.connection.writableLength).toBeLessThanOrEqual(WAITING_BYTES_MAX + 2 * FRAME_BYTES);
    }
    await eventually(() => expect(sequencesOf(reader.client)).toEqual(range(1, 3_000)));
    expect(idler.connection.writableLength).toBeGreaterThan(WAITING_BYTES_MAX);
    vi.advanceTimersByTime(UNREAD_MS_MAX - 1);
    expect(idler.ws.readyState).toBe(idler.ws.OPEN);
    vi.advanceTimersByTime(1);
    expect(idler.ws.readyState).toBe(idler.ws.CLOSING);
    idler.client.client.socket.resume();
    expect(await idler.client.closeCode()).toBe(4202);
    idler.client.send(closeFrame(4202));
    await eventually(() => expect(hub.sockets.size).toBe(1));
  });

  it('is cut off where it ended its side', async () => {
    const { hub, open } = await startHub(3_000);
    const idler = await open(0);
    idler.client.client.socket.pause();
    await eventually(() => expect(idler.connection.writableLength).toBeGreaterThan(WAITING_BYTES_MAX));
    idler.client.client.socket.end();
    await eventually(() => expect(idler.ws.readyState).not.toBe(idler.ws.OPEN));
    vi.advanceTimersByTime(UNREAD_MS_MAX);
    await eventually(() => expect(hub.sockets.size).toBe(0));
  });

  it('is sent no pongs beyond the buffer', async () => {
    const { hub, open } = await startHub();
    const idler = await open();
    idler.client.client.socket.pause();
    for (let sequence = 1; idler.connection.writableLength <= WAITING_BYTES_MAX; sequence += 1) {
      hub.accept(frame(sequence));
      await nextTurn();
    }
    const pong = vi.spyOn(idler.ws, 'pong');
    const pinged = once(idler.ws, 'ping');
    idler.client.send(clientFrame(OPCODE.ping, 'x'));
    await pinged;
    expect(pong).not.toHaveBeenCalled();
  });
});

it('accepts the next frame only, and ignores duplicates', async () => {
  const { hub } = await startHub(1);
  expect([3, 2, 2, 1, 4].map((sequence) => hub.accept(frame(sequence)))).toEqual([false, true, true, true, false]);
  expect(hub.cursor).toBe(2);
});

it('sends a client that reads slowly every event once, in order', async () => {
  const { hub, open } = await startHub(3_000);
  const slow = await open(0);
  const { socket } = slow.client.client;
  const readSlowly = () => {
    socket.pause();
    setImmediate(() => socket.resume());
  };
  socket.on('data', readSlowly);
  for (let sequence = 3_001; sequence <= 3_050; sequence += 1) hub.accept(frame(sequence));
  await eventually(() => slow.client.client.received().length > 3_050 * FRAME_BYTES, { timeoutMs: 15_000 });
  socket.off('data', readSlowly);
  expect(sequencesOf(slow.client)).toEqual(range(1, 3_050));
  expect(slow.codes).toEqual([]);
});

describe('a heartbeat', () => {
  beforeEach(fakeTimers);

  it('cuts off a client after two pings without a pong of the same payload, and no other', async () => {
    const { open } = await startHub();
    const [mute, blind, lively, late] = [await open(), await open(), await open(), await open()];
    const answer = async ({ client, ws }: typeof mute, round: number) => {
      await eventually(() => expect(client.payloads(OPCODE.ping)).toHaveLength(round));
      const answered = once(ws, 'pong');
      client.send(clientFrame(OPCODE.pong, client.frames().findLast(({ opcode }) => opcode === OPCODE.ping)?.payload));
      await answered;
    };
    for (let round = 1; round <= 6; round += 1) {
      vi.advanceTimersByTime(PING_INTERVAL_MS);
      blind.client.send(clientFrame(OPCODE.pong, 'alive'));
      await answer(lively, round);
      if (round % 2 === 0) await answer(late, round);
    }
    await eventually(() => expect([mute.codes, blind.codes]).toEqual([[1006], [1006]]));
    expect([lively.codes, late.codes]).toEqual([[], []]);
  });

  it('spreads the pings of clients that came together', async () => {
    const { open } = await startHub();
    const ping = vi.fn();
    for (let i = 0; i < 30; i += 1) vi.spyOn((await open()).ws, 'ping').mockImplementation(ping);
    vi.advanceTimersByTime(PING_INTERVAL_MS / 10);
    expect(ping.mock.calls.length).toBeLessThan(15);
    vi.advanceTimersByTime(PING_INTERVAL_MS);
    expect(ping.mock.calls.length).toBeGreaterThanOrEqual(30);
  });
});
