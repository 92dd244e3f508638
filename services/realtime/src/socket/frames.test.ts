import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { clientFrame, closeFrame, OPCODE, RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, startRelay, type TestNode } from '../testing/test-node.ts';

let apps: FakeApps;
let application: FakeApplication;
let redisUrl: string;
let node: TestNode;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  redisUrl = (await testRedis()).url;
  node = await startNode(apps, redisUrl);
});

async function open(): Promise<RawSocket> {
  const socket = await RawSocket.open(node.port, upgradeRequest(application.socketKey));
  await socket.ready();
  return socket;
}

/** Sees that the connection is open and answered. */
async function expectAnswer(socket: RawSocket): Promise<void> {
  const word = crypto.randomUUID();
  socket.send(clientFrame(OPCODE.ping, word));
  await eventually(() => expect(socket.frames().map(({ payload }) => String(payload))).toContain(word));
}

const text = (payload: string | Buffer, isFinal = true) => clientFrame(OPCODE.text, payload, { isFinal });
const more = (payload: string, isFinal = false) => clientFrame(OPCODE.continuation, payload, { isFinal });
const repeat = (count: number, frame: Buffer) => Array.from({ length: count }, () => frame);

describe('a client', () => {
  it.each([
    ['text', [text('hello')]],
    ['nothing', [text('')]],
    ['exactly 4 KiB', [text('x'.repeat(4_096))]],
    ['a message in parts', [text('a', false), more('b'), more('c', true)]],
    ['exactly 4 KiB in parts', [text('x'.repeat(4_000), false), more('x'.repeat(96), true)]],
    ['a ping amid the parts of a message', [text('a', false), clientFrame(OPCODE.ping), more('c', true)]],
    ['a hundred parts', [text('a', false), ...repeat(98, more('b')), more('c', true)]],
    ['a pong that was not asked for', [clientFrame(OPCODE.pong, 'x'.repeat(125))]],
  ])('may send %s', async (_, frames) => {
    const socket = await open();
    socket.send(...frames);
    await expectAnswer(socket);
  });

  it.each([
    ['a message over 4 KiB', [text('x'.repeat(4_097))], 1009],
    ['the announcement of 4 GiB', [clientFrame(OPCODE.text, '', { announcedBytes: 2 ** 32 })], 1009],
    ['the announcement of more than can be counted', [clientFrame(OPCODE.text, '', { announcedBytes: 2 ** 62 })], 1009],
    ['over 4 KiB in parts', [text('x'.repeat(4_000), false), more('x'.repeat(97))], 1009],
    ['more than a hundred parts', [text('', false), ...repeat(100, more(''))], 1008],
    ['a binary message', [clientFrame(OPCODE.binary, 'x')], 1003],
    ['an unmasked message', [clientFrame(OPCODE.text, 'x', { isMasked: false })], 1002],
    ['an unmasked ping', [clientFrame(OPCODE.ping, '', { isMasked: false })], 1002],
    ['a reserved bit', [clientFrame(OPCODE.text, 'x', { reservedBits: 0x40 })], 1002],
    ['another reserved bit', [clientFrame(OPCODE.text, 'x', { reservedBits: 0x10 })], 1002],
    ['a reserved opcode', [clientFrame(3, 'x')], 1002],
    ['a reserved control opcode', [clientFrame(0xb, 'x')], 1002],
    ['a ping of 126 bytes', [clientFrame(OPCODE.ping, 'x'.repeat(126))], 1002],
    ['a ping in parts', [clientFrame(OPCODE.ping, 'x', { isFinal: false })], 1002],
    ['a part of nothing', [more('x')], 1002],
    ['a message within another', [text('a', false), text('b')], 1002],
    ['no UTF-8', [text(Buffer.from([0xc3, 0x28]))], 1007],
    ['a lone surrogate', [text(Buffer.from([0xed, 0xa0, 0x80]))], 1007],
    ['half a close code', [clientFrame(OPCODE.close, 'x')], 1002],
    ['a close code that is none', [closeFrame(999)], 1002],
    ['a close code that is never sent', [closeFrame(1005)], 1002],
    ['a close reason that is no UTF-8', [clientFrame(OPCODE.close, Buffer.from([0x03, 0xe8, 0xc3, 0x28]))], 1007],
    ['a close code of its own', [closeFrame(4_999, 'bye')], 4_999],
    ['a close frame without a code', [clientFrame(OPCODE.close)], 1005],
    ['101 messages in 10 s', repeat(101, text('x')), 4201],
    ['101 pings in 10 s', repeat(101, clientFrame(OPCODE.ping, 'x')), 4201],
    ['101 pongs in 10 s', repeat(101, clientFrame(OPCODE.pong)), 4201],
    ['a hundred thousand pings', repeat(100_000, clientFrame(OPCODE.ping)), 4201],
  ])('that sends %s is closed with the code for that', async (_, frames, code) => {
    const [socket, neighbour] = [await open(), await open()];
    socket.send(...frames);
    expect(await socket.closeCode()).toBe(code);
    expect(socket.frames().filter(({ opcode }) => opcode === OPCODE.close)).toHaveLength(1);
    await expectAnswer(neighbour);
    socket.client.socket.destroy();
  });

  it('may send a hundred pings in 10 s, and gets an answer to each', async () => {
    const socket = await open();
    socket.send(...repeat(100, clientFrame(OPCODE.ping, 'x')));
    await eventually(() => expect(socket.frames().filter(({ opcode }) => opcode === OPCODE.pong)).toHaveLength(100));
  });

  it('is not heard any more after its close frame', async () => {
    const socket = await open();
    socket.send(closeFrame(1000), clientFrame(OPCODE.ping, 'late'), clientFrame(OPCODE.binary, 'x'));
    expect(await socket.closeCode()).toBe(1000);
    expect(await socket.client.ended).toBe('end');
    expect(socket.frames().filter(({ opcode }) => opcode === OPCODE.pong)).toEqual([]);
  });

  it('may send its frames a byte at a time', async () => {
    const socket = await open();
    socket.client.socket.setNoDelay(true);
    for (const byte of clientFrame(OPCODE.ping, 'slowly')) {
      await new Promise((resolve) => socket.client.socket.write(Buffer.from([byte]), resolve));
    }
    await eventually(() => expect(socket.frames().map(({ payload }) => String(payload))).toContain('slowly'));
  });

  it('that floods is gone soon, without its answer to the close frame', async () => {
    const socket = await open();
    const poured = socket.client.pour(64 * 1024 * 1024);
    expect(await socket.closeCode()).toBe(1002);
    await poured;
    await eventually(() => expect(node.lines).toContainEqual(expect.objectContaining({ msg: 'socket closed' })), {
      timeoutMs: 8_000,
    });
  });
});

describe('events', () => {
  it('reach everybody while others break the rules', async () => {
    const relay = startRelay(redisUrl);
    const neighbour = await open();
    const hostile = await Promise.all(Array.from({ length: 50 }, open));
    hostile.forEach((socket, i) => {
      if (i % 5 === 0) socket.send(...repeat(20_000, clientFrame(OPCODE.ping)));
      if (i % 5 === 1) socket.send(clientFrame(OPCODE.binary, 'x'));
      if (i % 5 === 2) socket.client.socket.end();
      if (i % 5 === 3) socket.client.socket.resetAndDestroy();
      if (i % 5 === 4) socket.client.socket.pause();
    });
    for (let i = 0; i < 5; i += 1) await relay.relay(application, apps.logVersion(application));
    await eventually(() => {
      const sequences = neighbour.frames().map(({ payload }) => JSON.parse(String(payload)).sequence);
      expect(sequences).toEqual([undefined, '1', '2', '3', '4', '5']);
    });
  });
});
