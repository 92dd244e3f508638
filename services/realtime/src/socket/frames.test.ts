import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { beforeEach, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { clientFrame, closeFrame, OPCODE, openRawSocket, type RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { createPublisher, startNode, type TestNode } from '../testing/test-node.ts';

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
  const socket = await openRawSocket(node.port, upgradeRequest(application.socketKey));
  await socket.ready();
  return socket;
}

async function expectPong(socket: RawSocket): Promise<void> {
  socket.send(clientFrame(OPCODE.ping, 'still there'));
  await eventually(() => expect(socket.payloads(OPCODE.pong)).toContain('still there'));
}

const text = (payload: string | Buffer, isFinal = true) => clientFrame(OPCODE.text, payload, { isFinal });
const more = (payload: string, isFinal = false) => clientFrame(OPCODE.continuation, payload, { isFinal });
const repeat = (count: number, frame: Buffer) => Array.from({ length: count }, () => frame);

it.each([
  ['text of 4 KiB', [text('x'.repeat(4_096))]],
  ['4 KiB in parts, with a ping between', [text('x'.repeat(4_000), false), clientFrame(OPCODE.ping), more('x'.repeat(96), true)]],
  ['a pong without a ping', [clientFrame(OPCODE.pong, 'x'.repeat(125))]],
  ['99 pings', repeat(99, clientFrame(OPCODE.ping, 'x'))],
])('accepts %s', async (_what, frames) => {
  const socket = await open();
  socket.send(...frames);
  await expectPong(socket);
});

it.each([
  ['a message over 4 KiB', [text('x'.repeat(4_097))], 1009],
  ['an announcement of 4 GiB', [Buffer.of(0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4)], 1009],
  ['over 4 KiB in parts', [text('x'.repeat(4_000), false), more('x'.repeat(97))], 1009],
  ['a message in more than 100 parts', [text('', false), ...repeat(100, more(''))], 1008],
  ['a binary message', [clientFrame(OPCODE.binary, 'x')], 1003],
  ['an unmasked message', [clientFrame(OPCODE.text, 'x', { isMasked: false })], 1002],
  ['a reserved bit', [clientFrame(OPCODE.text, 'x', { hasReservedBit: true })], 1002],
  ['a malformed close code', [closeFrame(999)], 1002],
  ['text that is not UTF-8', [text(Buffer.from([0xc3, 0x28]))], 1007],
  ['101 messages in 10 s', repeat(101, text('x')), 4201],
  ['101 pongs in 10 s', repeat(101, clientFrame(OPCODE.pong)), 4201],
  ['10,000 pings', repeat(10_000, clientFrame(OPCODE.ping)), 4201],
])('closes for %s, and other sockets receive events', async (_what, frames, code) => {
  const [socket, neighbour] = [await open(), await open()];
  socket.send(...frames);
  expect(await socket.closeCode()).toBe(code);
  socket.client.socket.destroy();
  await createPublisher(redisUrl).broadcast(application, apps.logVersion(application));
  await eventually(() => expect(neighbour.payloads(OPCODE.text)).toHaveLength(2));
});

it('cuts off a client that floods without answering the close frame', async () => {
  const socket = await open();
  socket.send(...repeat(101, text('x')));
  const isClosed = () => expect(node.lines).toContainEqual(expect.objectContaining({ msg: 'socket closed' }));
  await eventually(isClosed, { timeoutMs: 3_000 });
});
