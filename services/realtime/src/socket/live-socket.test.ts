import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { Frame } from '../frame/frame.ts';
import { Hub } from '../hub/hub.ts';
import { createWebSocketServer } from '../server.ts';
import { clientFrame, closeFrame, OPCODE, RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { Heartbeat } from './heartbeat.ts';
import { LiveSocket } from './live-socket.ts';

/** What a node may hold for one client that does not read (promises R7). */
const HELD_BYTES_MAX = 2 * 1024 * 1024;
const WAITING_BYTES_MAX = 256 * 1024;
const FRAME_BYTES = 4_096;
const PAGE_FRAMES = 500;
const PING_INTERVAL_MS = 60;

const frame = (sequence: number, byteSize = FRAME_BYTES): Frame => ({
  sequence,
  bytes: Buffer.from(`${sequence} `.padEnd(byteSize, 'x')),
  isLast: false,
});

/** A hub whose log holds events 1 to `logged` and those that it takes in, and a port that sockets of it are opened on. */
async function startHub(logged = 0, waitMsMax?: number) {
  const readFrames = async (after: number) =>
    Array.from({ length: Math.min(PAGE_FRAMES, hub.cursor - after) }, (_, i) => frame(after + 1 + i));
  const hub: Hub = new Hub({ applicationId: 'a', cursor: logged, keyFingerprint: 'k', readFrames });
  const heartbeat = new Heartbeat(PING_INTERVAL_MS);
  const [server, webSockets] = [createServer(), createWebSocketServer()];
  const opened: Array<{ live: LiveSocket; ws: WebSocket; connection: Socket; codes: number[]; pongs: () => number }> = [];
  server.on('upgrade', (req, socket, head) =>
    webSockets.handleUpgrade(req, socket, head, (ws) => {
      const connection = socket as Socket;
      const options = { ws, connection, source: hub, keyFingerprint: 'k', verifiedAt: 0, ...(waitMsMax && { waitMsMax }) };
      const live = new LiveSocket({ ...options, position: Number(req.headers['last-event-id'] ?? logged), requestId: 'r' });
      const codes: number[] = [];
      let pongs = 0;
      ws.on('pong', () => {
        pongs += 1;
      });
      live.onGone((code) => {
        hub.sockets.delete(live);
        codes.push(code);
      });
      opened.push({ live, ws, connection, codes, pongs: () => pongs });
      hub.sockets.add(live);
      live.start([]);
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    heartbeat.stop();
    for (const { live } of opened) live.cut();
    server.close();
  });
  const open = async (position = logged) => {
    const { port } = server.address() as AddressInfo;
    const before = opened.length;
    const client = await RawSocket.open(port, upgradeRequest('k', { 'Last-Event-ID': String(position) }));
    const side = await eventually(() => opened[before] ?? expect.fail('not opened yet'));
    return { client, ...side };
  };
  return { hub, heartbeat, open };
}

const sequencesOf = (client: RawSocket) =>
  client.frames().flatMap(({ opcode, payload }) => (opcode === OPCODE.text ? Number.parseInt(String(payload), 10) : []));
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('a client that does not read', () => {
  it('is closed with 4202, is held little for, and holds nobody else up', async () => {
    const { hub, open } = await startHub(0, 1_000);
    const [idler, reader] = [await open(), await open()];
    idler.client.client.socket.pause();
    const latencies: number[] = [];
    for (let sequence = 1; sequence <= 3_000; sequence += 1) {
      const sentAt = performance.now();
      hub.accept(frame(sequence));
      await nextTurn();
      expect(idler.connection.writableLength).toBeLessThanOrEqual(WAITING_BYTES_MAX + 2 * FRAME_BYTES);
      if (sequence % 100 > 0) continue;
      await eventually(() => reader.client.client.received().endsWith('x'), { intervalMs: 1 });
      latencies.push(performance.now() - sentAt);
    }
    expect(idler.connection.writableLength).toBeGreaterThan(WAITING_BYTES_MAX);
    expect(latencies.sort((a, b) => a - b)[latencies.length >> 1]).toBeLessThan(250);
    await eventually(() => expect(sequencesOf(reader.client)).toEqual(upTo(3_000)));
    // The close frame waits behind the others, from before these were all sent where that took long.
    await eventually(() => idler.ws.readyState === idler.ws.CLOSING);
    expect(idler.connection.writableLength).toBeGreaterThan(WAITING_BYTES_MAX);
    idler.client.client.socket.resume();
    expect(await idler.client.closeCode()).toBe(4202);
    idler.client.send(closeFrame(4202));
    await eventually(() => expect(hub.sockets.size).toBe(1));
  });

  it('is cut off also when it never reads that it is closed', async () => {
    const { hub, open } = await startHub(3_000, 50);
    const idler = await open(0);
    idler.client.client.socket.pause();
    await eventually(() => expect(idler.codes).toHaveLength(1), { timeoutMs: 8_000 });
    expect(hub.sockets.size).toBe(0);
    expect(idler.connection.destroyed).toBe(true);
  });

  it('is cut off also when it has ended its side', async () => {
    const { hub, open } = await startHub(3_000, 500);
    const idler = await open(0);
    idler.client.client.socket.pause();
    await eventually(() => expect(idler.connection.writableLength).toBeGreaterThan(WAITING_BYTES_MAX));
    idler.client.client.socket.end();
    await eventually(() => expect(hub.sockets.size).toBe(0));
  });

  it('is not sent answers to its pings without end', async () => {
    const { hub, open } = await startHub(0, 50);
    const idler = await open();
    idler.client.client.socket.pause();
    // Until nearly as much waits as may.
    for (let sequence = 1; idler.connection.writableLength <= WAITING_BYTES_MAX - 2 * FRAME_BYTES; sequence += 1) {
      hub.accept(frame(sequence));
      await nextTurn();
    }
    idler.client.send(...Array.from({ length: 100 }, () => clientFrame(OPCODE.ping, 'x'.repeat(125))));
    await eventually(() => expect(idler.codes).toHaveLength(1), { timeoutMs: 8_000 });
    expect(idler.connection.writableLength).toBeLessThan(HELD_BYTES_MAX);
  });
});

describe('a client that reads slowly', () => {
  it('gets everything, in order, each once', async () => {
    const { hub, open } = await startHub(3_000, 1_000);
    const slow = await open(0);
    const { socket } = slow.client.client;
    let isSlow = true;
    // One chunk of what has come, then a turn in which it reads nothing.
    socket.on('data', () => {
      if (!isSlow) return;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    for (let sequence = 3_001; sequence <= 3_050; sequence += 1) hub.accept(frame(sequence));
    await eventually(() => slow.client.client.received().length > 3_050 * FRAME_BYTES, { timeoutMs: 15_000 });
    isSlow = false;
    expect(sequencesOf(slow.client)).toEqual(upTo(3_050));
    expect(slow.codes).toEqual([]);
  });
});

describe('a heartbeat', () => {
  it('cuts off a client that misses two pings, and no other', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { heartbeat, open } = await startHub();
    const [mute, lively, late] = [await open(), await open(), await open()];
    for (const { live } of [mute, lively, late]) heartbeat.add(live);
    const pings = ({ client }: typeof mute) => client.frames().filter(({ opcode }) => opcode === OPCODE.ping);
    const answer = async (side: typeof mute, round: number) => {
      await eventually(() => expect(pings(side)).toHaveLength(round));
      const pongs = side.pongs();
      side.client.send(clientFrame(OPCODE.pong, pings(side).at(-1)?.payload));
      await eventually(() => side.pongs() > pongs);
    };
    heartbeat.start();
    for (let round = 1; round <= 8; round += 1) {
      vi.advanceTimersByTime(PING_INTERVAL_MS);
      await answer(lively, round);
      if (round % 2 === 0) await answer(late, round);
    }
    await eventually(() => expect(mute.codes).toEqual([1006]));
    expect(pings(mute)).toHaveLength(2);
    expect([lively.codes, late.codes]).toEqual([[], []]);
  });

  it('takes no pong for a sign of life that is not the answer to its ping, as from a client that reads nothing', async () => {
    const { heartbeat, open } = await startHub();
    const blind = await open();
    heartbeat.add(blind.live);
    const sending = setInterval(() => blind.client.send(clientFrame(OPCODE.pong, 'alive')), 50);
    onTestFinished(() => clearInterval(sending));
    heartbeat.start();
    await eventually(() => expect(blind.codes).toEqual([1006]));
  });

  it('spreads those that come at once over the whole of its time', async () => {
    const { heartbeat, open } = await startHub();
    const clients: Array<Awaited<ReturnType<typeof open>>> = [];
    for (let i = 0; i < 30; i += 1) clients.push(await open());
    let [pingsInTick, most] = [0, 0];
    for (const { live } of clients) {
      heartbeat.add(live);
      const ping = live.ping.bind(live);
      live.ping = () => {
        pingsInTick += 1;
        most = Math.max(most, pingsInTick);
        setImmediate(() => {
          pingsInTick = 0;
        });
        ping();
      };
    }
    heartbeat.start();
    const isPinged = ({ client }: { client: RawSocket }) => client.frames().length > 0;
    await eventually(() => clients.every(isPinged));
    expect(most).toBeLessThan(10);
  });
});
