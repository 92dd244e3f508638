import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lingeringClose } from './lingering-close.ts';
import { LingeringResponse } from './lingering-response.ts';

const MIB = 1024 * 1024;
const BIG = 300 * MIB;

async function serve(listener: RequestListener) {
  const server = createServer({ ServerResponse: LingeringResponse }, listener as never);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connections = () => new Promise<number>((resolve) => server.getConnections((_err, count) => resolve(count)));
  return { port, connections, url: `http://127.0.0.1:${port}` };
}

/** Refuses what it is sent, before any of it or after a part was read in one of the ways to do so. */
const REFUSALS: Record<string, RequestListener> = {
  'before reading': (_req, res) => void res.writeHead(413).end('refused'),
  'once no more is taken': async (req, res) => {
    await eventually(() => req.readableLength >= req.readableHighWaterMark);
    res.writeHead(413).end('refused');
  },
  'after a piece': (req, res) => void req.once('data', () => req.pause() && res.writeHead(413).end('refused')),
  'out of a loop': async (req, res) => {
    for await (const _ of req) break;
    res.writeHead(413).end('refused');
  },
};

const HEADS = {
  'a length': `PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${BIG}\r\n\r\n`,
  chunks: `PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${BIG.toString(16)}\r\n`,
};

const cases = Object.keys(REFUSALS).flatMap((when) =>
  Object.keys(HEADS).map((how) => [when, how as keyof typeof HEADS] as const),
);

describe('an answer to a request that is still being sent', () => {
  it.each(cases)('reaches a client that reads at the end: refused %s, sent with %s', async (when, how) => {
    const { port, connections } = await serve(REFUSALS[when] as RequestListener);
    const client = await openRawClient(port);
    client.socket.pause();
    client.socket.write(HEADS[how]);
    await client.pour(BIG);
    expect(client.socket.bytesWritten).toBe(BIG + HEADS[how].length);
    client.socket.end();
    client.socket.resume();
    expect(await client.ended).toBe('end');
    expect(client.received()).toMatch(/^HTTP\/1\.1 413 .*connection: close.*\r\n\r\n(7\r\n)?refused/is);
    await eventually(async () => (await connections()) === 0);
  });

  it('reaches fetch and curl', async () => {
    const { url } = await serve(REFUSALS['before reading'] as RequestListener);
    const piece = Buffer.alloc(MIB);
    const body = Readable.toWeb(Readable.from(Array.from({ length: 300 }, () => piece)));
    const init = { method: 'PUT', body, duplex: 'half' } as unknown as RequestInit;
    expect((await fetch(url, init)).status).toBe(413);
    const args = ['-sS', '-H', 'Expect:', '-T', '-', '-w', '%{http_code}', url];
    const curl = execFile('curl', args, { encoding: 'utf8' });
    Readable.from(Array.from({ length: 100 }, () => piece))
      .on('error', () => undefined)
      .pipe(curl.stdin as NodeJS.WritableStream)
      .on('error', () => undefined);
    let output = '';
    curl.stdout?.on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(curl, 'close');
    expect([code, output]).toEqual([0, 'refused413']);
  });

  it('is followed by nothing: what looks like a further request is part of what is discarded', async () => {
    let requests = 0;
    const { port } = await serve((_req, res) => {
      requests += 1;
      res.writeHead(413).end('refused');
    });
    const client = await openRawClient(port);
    client.socket.write('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n');
    await eventually(() => client.received().includes('refused'));
    client.socket.end(`0123456789${HEADS['a length']}`);
    expect(await client.ended).toBe('end');
    expect(requests).toBe(1);
  });

  it('keeps the connection where the body was there, read or not', async () => {
    let answered = 0;
    const { port } = await serve((req, res) => {
      answered += 1;
      if (answered === 1) setImmediate(() => res.end('unread'));
      else req.resume().once('end', () => res.end('read'));
    });
    const client = await openRawClient(port);
    const request = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789';
    client.socket.write(request);
    await eventually(() => client.received().endsWith('unread'));
    client.socket.write(request);
    await eventually(() => client.received().endsWith('\r\n\r\nread'));
    expect(client.received()).not.toMatch(/connection: close/i);
    client.socket.destroy();
  });
});

describe('a connection that lingers', () => {
  async function serveLingering(bounds: { totalMs: number; silenceMs: number }) {
    return serve((req, res) => {
      const { socket } = req;
      res.writeHead(413, { connection: 'keep-alive' }).end('refused');
      res.once('close', () => lingeringClose(socket, '', bounds));
    });
  }

  it('is closed when nothing comes any more', async () => {
    const { port, connections } = await serveLingering({ totalMs: 60_000, silenceMs: 50 });
    const client = await openRawClient(port);
    client.socket.write(HEADS['a length']);
    await eventually(async () => (await connections()) === 0);
    client.socket.destroy();
  });

  it('is closed however much comes', async () => {
    const { port, connections } = await serveLingering({ totalMs: 200, silenceMs: 60_000 });
    const client = await openRawClient(port);
    client.socket.write(HEADS['a length']);
    const poured = client.pour(Number.MAX_SAFE_INTEGER);
    await eventually(async () => (await connections()) === 0);
    await poured;
    client.socket.destroy();
  });
});
