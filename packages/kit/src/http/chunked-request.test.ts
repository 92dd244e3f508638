import type { IncomingMessage, ServerResponse } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { startNodeServer } from '../testing/servers.ts';
import { ChunkedRequest } from './chunked-request.ts';
import { LingeringResponse } from './lingering-close.ts';

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const END = '0\r\n\r\n';
const KIB_64 = 64 * 1024;

const chunks = (byteSize: number, count: number) => `${byteSize.toString(16)}\r\n${'a'.repeat(byteSize)}\r\n`.repeat(count);

/** Answers the body with its number of pieces in front, or with the reason of its failure. */
async function echo(req: IncomingMessage, res: ServerResponse): Promise<void> {
  try {
    const pieces = (await req.toArray()) as Buffer[];
    res.end(`${pieces.length}:${Buffer.concat(pieces).toString()}`);
  } catch (err) {
    res.writeHead(400).end(String((err as { reason?: string }).reason));
  }
}

async function start(listener: (req: IncomingMessage, res: ServerResponse) => unknown = echo) {
  const classes = { IncomingMessage: ChunkedRequest, ServerResponse: LingeringResponse as never };
  const server = await startNodeServer(listener, undefined, classes);
  const open = async (...writes: string[]) => {
    const client = await server.open(...writes);
    return { ...client, body: () => client.received().split('\r\n\r\n')[1] ?? '' };
  };
  return { open };
}

it.each([
  ['64 KiB in chunks of one byte, then large ones', chunks(1, KIB_64) + chunks(10_000, 10), KIB_64 + 100_000],
  ['large chunks, then small ones within the average', chunks(10_000, 100) + chunks(1, 3_000), 1_003_000],
  ['64 KiB and a last chunk of one byte', chunks(256, 256) + chunks(1, 1), KIB_64 + 1],
  ['nothing', '', 0],
])('reads %s', async (_what, body, bytes) => {
  const client = await (await start()).open(HEAD, body, END);
  await eventually(() => expect(client.body().replace(/^\d+:/, '')).toHaveLength(bytes));
});

it.each([
  ['of 255 bytes', chunks(255, 300)],
  ['that become small', chunks(8_000, 10) + chunks(1, 1_000)],
  ['of one byte without end', chunks(1, 200_000)],
])('rejects chunks below 256 bytes on average after the first 64 KiB: %s', async (_what, body) => {
  const client = await (await start()).open(HEAD, body, END);
  await eventually(() => expect(client.body()).toContain('chunks_too_small'));
});

it('rejects small chunks also when the body is read only later', async () => {
  const { open } = await start(async (req, res) => {
    await eventually(() => (req as ChunkedRequest).rejection !== undefined);
    await echo(req, res);
  });
  const client = await open(HEAD, chunks(1, 100_000));
  await eventually(() => expect(client.body()).toContain('chunks_too_small'));
});

it('gives the reader small chunks in few pieces, in order, and leaves the connection to the next request', async () => {
  const text = Array.from({ length: 20_000 }, (_, i) => String(i % 10));
  const { open } = await start();
  const client = await open(HEAD, ...text.map((digit) => `1\r\n${digit}\r\n`), END, HEAD, END);
  await eventually(() => client.received().endsWith('0:'));
  const [pieces, body] = client.body().split(/[:\r]/);
  expect(body?.replace(/HTTP.*/, '')).toBe(text.join(''));
  expect(Number(pieces)).toBeLessThan(text.length / 100);
});

it('counts no pieces of a large chunk as chunks', async () => {
  const client = await (await start()).open();
  client.socket.setNoDelay(true).write(`${HEAD}${(100_000).toString(16)}\r\n`);
  for (let i = 0; i < 1_000; i += 1) {
    client.socket.write('a'.repeat(100));
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.socket.write(`\r\n${END}`);
  await eventually(() => expect(client.body()).toMatch(/^\d+:a{100000}$/));
});

it('answers other requests between two reads of small chunks', async () => {
  let read = 0;
  const { open } = await start((req, res) => {
    if (req.method === 'GET') res.end('1:ok');
    else req.on('data', (piece: Buffer) => (read += piece.byteLength));
  });
  await open(HEAD + chunks(1, 60_000));
  await eventually(() => read > 0);
  const other = await open('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually(() => other.body() === '1:ok');
  // Node alone would have read all of it first.
  expect(read).toBeLessThan(60_000);
});
