import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ChunkedRequest } from './chunked-request.ts';
import { LingeringResponse } from './lingering-response.ts';

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const END = '0\r\n\r\n';
const KIB_64 = 64 * 1024;

const chunks = (byteSize: number, count: number) => `${byteSize.toString(16)}\r\n${'a'.repeat(byteSize)}\r\n`.repeat(count);

/** Reads the body, and answers its size and in how many pieces it came, or why it failed. */
async function answerSize(req: IncomingMessage, res: ServerResponse): Promise<void> {
  let [bytes, pieces] = [0, 0];
  try {
    for await (const piece of req as AsyncIterable<Buffer>) {
      bytes += piece.byteLength;
      pieces += 1;
    }
    res.end(JSON.stringify({ bytes, pieces }));
  } catch (err) {
    res.writeHead(400).end(JSON.stringify({ reason: (err as { reason?: string }).reason }));
  }
}

async function start(listener: (req: IncomingMessage, res: ServerResponse) => unknown = answerSize): Promise<number> {
  const server = createServer({ IncomingMessage: ChunkedRequest, ServerResponse: LingeringResponse }, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The body of the answer to a request that is sent as it is. */
async function exchange(port: number, ...writes: string[]): Promise<Record<string, unknown>> {
  const client = await openRawClient(port);
  onTestFinished(() => void client.socket.destroy());
  for (const text of writes) client.socket.write(text);
  const body = () =>
    client
      .received()
      .split('\r\n\r\n')[1]
      ?.match(/\{.*\}/)?.[0];
  await eventually(() => body() !== undefined);
  return JSON.parse(body() as string);
}

describe('a body in chunks', () => {
  it.each([
    ['64 KiB in chunks of one byte', chunks(1, KIB_64), KIB_64],
    ['1 MiB in chunks of 256 bytes', chunks(256, 4096), 1024 * 1024],
    ['64 KiB in chunks of one byte, then large ones', chunks(1, KIB_64) + chunks(10_000, 10), KIB_64 + 100_000],
    ['large chunks, then small ones that keep the average', chunks(10_000, 100) + chunks(1, 3_000), 1_003_000],
    ['64 KiB and a last chunk of one byte', chunks(256, 256) + chunks(1, 1), KIB_64 + 1],
    ['nothing', '', 0],
  ])('is read: %s', async (_what, body, bytes) => {
    expect(await exchange(await start(), HEAD, body, END)).toMatchObject({ bytes });
  });

  it.each([
    ['of one byte', chunks(1, KIB_64 + 2)],
    ['of 255 bytes', chunks(255, 300)],
    ['that become small', chunks(8_000, 10) + chunks(1, 1_000)],
    ['of one byte without end', chunks(1, 400_000)],
  ])('is refused once they are below 256 bytes on average after the first 64 KiB: %s', async (_what, body) => {
    expect(await exchange(await start(), HEAD, body, END)).toEqual({ reason: 'chunks_too_small' });
  });

  it('is refused also when it is read only later', async () => {
    const port = await start(async (req, res) => {
      await eventually(() => (req as ChunkedRequest).refusal !== undefined);
      await answerSize(req, res);
    });
    expect(await exchange(port, HEAD, chunks(1, 100_000))).toEqual({ reason: 'chunks_too_small' });
  });

  it('reaches its reader in few pieces, whole and in order', async () => {
    const text = Array.from({ length: 20_000 }, (_, i) => String(i % 10));
    const received: Buffer[] = [];
    const port = await start(async (req, res) => {
      for await (const piece of req as AsyncIterable<Buffer>) received.push(piece);
      res.end('{}');
    });
    await exchange(port, HEAD, ...text.map((digit) => `1\r\n${digit}\r\n`), END);
    expect(Buffer.concat(received).toString()).toBe(text.join(''));
    expect(received.length).toBeLessThan(text.length / 100);
  });

  it('may have its chunks divided in any way on the network', async () => {
    const port = await start();
    const client = await openRawClient(port);
    client.socket.setNoDelay(true).write(`${HEAD}${(100_000).toString(16)}\r\n`);
    for (let i = 0; i < 1_000; i += 1) {
      client.socket.write('a'.repeat(100));
      await new Promise((resolve) => setImmediate(resolve));
    }
    client.socket.write(`\r\n${END}`);
    await eventually(() => client.received().includes('"bytes":100000'));
    client.socket.destroy();
  });

  it('leaves its connection to the next request', async () => {
    const port = await start();
    const client = await openRawClient(port);
    client.socket.write(`${HEAD}${chunks(1, 5_000)}${END}`.repeat(2));
    await eventually(() => client.received().match(/"bytes":5000/g)?.length === 2);
    client.socket.destroy();
  });

  it('of other clients is read, and requests are answered, between the reads of one in small chunks', async () => {
    const begun: number[] = [];
    const port = await start(async (req, res) => {
      if (req.method === 'GET') res.end('{}');
      else req.on('data', (piece: Buffer) => begun.push(piece.byteLength));
    });
    const client = await openRawClient(port);
    client.socket.write(HEAD + chunks(1, 60_000));
    await eventually(() => begun.length > 0);
    await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    // Node alone would have read all of it first.
    expect(begun.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(60_000);
    client.socket.destroy();
  });
});
