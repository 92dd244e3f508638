import type { RequestListener } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { startNodeServer } from '../testing/servers.ts';
import { LingeringResponse, lingeringClose } from './lingering-close.ts';

const MIB = 1024 * 1024;
const BIG = 20 * MIB;

const serve = (listener: RequestListener) => startNodeServer(listener, undefined, { ServerResponse: LingeringResponse as never });

const LENGTH = `PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${BIG}\r\n\r\n`;
const CHUNKED = `PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${BIG.toString(16)}\r\n`;

const REJECTIONS: Record<string, RequestListener> = {
  'before reading': (_req, res) => void res.writeHead(413).end('rejected'),
  'with a full buffer': async (req, res) => {
    await eventually(() => req.readableLength >= req.readableHighWaterMark);
    res.writeHead(413).end('rejected');
  },
  'after a piece': (req, res) => void req.once('data', () => req.pause() && res.writeHead(413).end('rejected')),
  'out of a loop': async (req, res) => {
    for await (const _ of req) break;
    res.writeHead(413).end('rejected');
  },
};

describe('a response to a request that is still being sent', () => {
  it.each([
    ['before reading', LENGTH],
    ['with a full buffer', LENGTH],
    ['after a piece', CHUNKED],
    ['out of a loop', CHUNKED],
  ] as const)('reaches a client that reads only at the end: %s, %j', async (when, head) => {
    const { open, connections } = await serve(REJECTIONS[when] as RequestListener);
    const client = await open(head);
    client.socket.pause();
    await client.pour(BIG);
    expect(client.socket.bytesWritten).toBe(BIG + head.length);
    client.socket.end();
    client.socket.resume();
    expect(await client.ended).toBe('end');
    expect(client.received()).toMatch(/^HTTP\/1\.1 413 .*connection: close.*\r\n\r\n(8\r\n)?rejected/is);
    await eventually(async () => (await connections()) === 0);
  });

  it('is followed by no other: what comes next is discarded', async () => {
    let requests = 0;
    const { open } = await serve((_req, res) => {
      requests += 1;
      res.writeHead(413).end('rejected');
    });
    const client = await open('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n');
    await eventually(() => client.received().includes('rejected'));
    client.socket.end(`0123456789${LENGTH}`);
    expect(await client.ended).toBe('end');
    expect(requests).toBe(1);
  });
});

it('a response leaves the connection open when the body was there, read or not', async () => {
  let answered = 0;
  const { open } = await serve((req, res) => {
    answered += 1;
    if (answered === 1) setImmediate(() => res.end('unread'));
    else req.resume().once('end', () => res.end('read'));
  });
  const request = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789';
  const client = await open(request);
  await eventually(() => client.received().endsWith('unread'));
  client.socket.write(request);
  await eventually(() => client.received().endsWith('\r\n\r\nread'));
  expect(client.received()).not.toMatch(/connection: close/i);
});

it.each([
  ['nothing comes', { totalMs: 60_000, silenceMs: 50 }, 0],
  ['much comes', { totalMs: 200, silenceMs: 60_000 }, Number.MAX_SAFE_INTEGER],
])('a lingering connection is closed though %s', async (_what, limits, byteSize) => {
  const { open, connections } = await serve((req, res) => {
    const { socket } = req;
    res.writeHead(413, { connection: 'keep-alive' }).end('rejected');
    res.once('close', () => lingeringClose(socket, '', limits));
  });
  const client = await open(LENGTH);
  const poured = client.pour(byteSize);
  await eventually(async () => (await connections()) === 0);
  await poured;
});
