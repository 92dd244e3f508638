import { hash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineErrors, fromConnectError } from '../errors.ts';
import { CREDENTIAL, startTcpServer, startTestServer } from '../testing/servers.ts';
import { type BodyCall, bodyRoute, createBodyClient } from './body-call.ts';

const MIB = 1024 * 1024;
const { file_refused } = defineErrors({ file_refused: { kind: 'too_large', message: 'Too large' } });

/** What happened to each body that a server was sent. */
interface Seen {
  readonly whole: Buffer[];
  broken: number;
  requestIds: string[];
}

async function startStore(byteSizeMax = Number.POSITIVE_INFINITY) {
  const seen: Seen = { whole: [], broken: 0, requestIds: [] };
  const handle = async (req: IncomingMessage, requestId: string) => {
    seen.requestIds.push(requestId);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of req as AsyncIterable<Buffer>) {
        size += chunk.byteLength;
        if (size > byteSizeMax) throw file_refused({ by: 'store' });
        chunks.push(chunk);
      }
    } catch (err) {
      if (!(err instanceof Error && err.name === 'DomainError')) seen.broken += 1;
      throw err;
    }
    const bytes = Buffer.concat(chunks);
    seen.whole.push(bytes);
    return { id: String(req.headers['x-name']), byteSize: BigInt(bytes.byteLength), checksum: hash('sha256', bytes, 'buffer') };
  };
  const route = bodyRoute({ path: '/bodies', output: UploadFileResponseSchema, handle });
  const server = await startTestServer([], { plainRoutes: [route] });
  return { ...server, seen };
}

function client(url: string, credential = CREDENTIAL) {
  const bodies = createBodyClient(url, credential);
  const send = (body: Readable, call: Partial<BodyCall> = {}) => {
    const whole = { path: '/bodies', body, byteSize: undefined, requestId: 'r1', timeoutMs: 10_000, ...call };
    return bodies.send(whole, UploadFileResponseSchema);
  };
  return { ...bodies, send };
}

const pieces = (count: number) => Readable.from(Array.from({ length: count }, (_, i) => Buffer.alloc(MIB, i)));
const codeOf = (sent: Promise<unknown>) =>
  sent.then(
    () => undefined,
    (err: unknown) => ConnectError.from(err).code,
  );

describe('a call whose request is a body', () => {
  it.each([undefined, 5 * MIB])('carries it as it is, its size told as %s', async (byteSize) => {
    const { url, seen } = await startStore();
    const answer = await client(url).send(pieces(5), { byteSize, headers: { 'x-name': 'five' } });
    const expected = Buffer.concat(await pieces(5).toArray());
    expect(answer).toMatchObject({ id: 'five', byteSize: BigInt(5 * MIB) });
    expect(Buffer.from(answer.checksum)).toEqual(hash('sha256', expected, 'buffer'));
    expect(seen.requestIds).toEqual(['r1']);
  });

  it.each([undefined, 0])('carries one without a byte, its size told as %s', async (byteSize) => {
    const { url, seen } = await startStore();
    expect((await client(url).send(Readable.from([]), { byteSize })).byteSize).toBe(0n);
    expect(seen.whole).toHaveLength(1);
  });

  it.each([undefined, 200 * MIB])('is told of a refusal while it sends, its size told as %s', async (byteSize) => {
    const { url, seen } = await startStore(3 * MIB);
    const body = pieces(200);
    const err = await client(url)
      .send(body, { byteSize })
      .then(String, (thrown: unknown) => thrown);
    expect(fromConnectError(err)).toMatchObject({ reason: 'file_refused', httpStatus: 413, metadata: { by: 'store' } });
    expect(seen).toMatchObject({ whole: [], broken: 0 });
    expect(body.destroyed).toBe(false);
  });

  it('fails as unauthenticated without the credential, and as unavailable where nobody listens', async () => {
    const { url, stop } = await startStore();
    expect(await codeOf(client(url, 'wrong').send(pieces(20)))).toBe(Code.Unauthenticated);
    await stop();
    expect(await codeOf(client(url).send(pieces(20)))).toBe(Code.Unavailable);
  });

  it('fails as unavailable when the service goes away before, while and after it is sent', async () => {
    const answers = ['', 'HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 10\r\n\r\n123'];
    for (const answer of answers) {
      for (const afterBytes of [0, MIB, 5 * MIB]) {
        let received = 0;
        const { port } = await startTcpServer((socket) => {
          socket.on('data', (chunk) => {
            received += chunk.byteLength;
            if (received >= afterBytes) socket.end(answer, () => socket.destroy());
          });
        });
        expect(await codeOf(client(`http://127.0.0.1:${port}`).send(pieces(5), { byteSize: 5 * MIB }))).toBe(Code.Unavailable);
      }
    }
  });

  it('does not take a success for true that comes before the body was sent', async () => {
    const { port } = await startTcpServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n');
    });
    const endless = new Readable({ read: () => undefined });
    expect(await codeOf(client(`http://127.0.0.1:${port}`).send(endless))).toBe(Code.Internal);
  });

  it('ends at its deadline and when it is given up, and the service sees the body break off', async () => {
    const { url, seen } = await startStore();
    const stalled = () => {
      const body = new Readable({ read: () => undefined });
      body.push('a beginning');
      return body;
    };
    expect(await codeOf(client(url).send(stalled(), { timeoutMs: 100 }))).toBe(Code.DeadlineExceeded);
    await eventually(() => seen.broken === 1);
    const controller = new AbortController();
    const given = codeOf(client(url).send(stalled(), { signal: controller.signal }));
    await eventually(() => seen.requestIds.length === 2);
    controller.abort();
    expect(await given).toBe(Code.Canceled);
    await eventually(() => seen.broken === 2);
    expect(seen.whole).toEqual([]);
  });

  it('is given up when its source is, without a word', async () => {
    const { url, seen } = await startStore();
    const body = new Readable({ read: () => undefined });
    body.push('a beginning');
    const sent = codeOf(client(url).send(body));
    await eventually(() => seen.requestIds.length === 1);
    body.destroy();
    expect(await sent).toBe(Code.Canceled);
    expect(await codeOf(client(url).send(body))).toBe(Code.Canceled);
    await eventually(() => seen.broken === 1);
  });

  it('never sends what is longer or shorter than it was said to be', async () => {
    const { url, seen } = await startStore();
    expect(await codeOf(client(url).send(pieces(2), { byteSize: 3 * MIB }))).toBe(Code.Canceled);
    expect(await codeOf(client(url).send(pieces(2), { byteSize: MIB + 1 }))).toBe(Code.Canceled);
    await eventually(() => seen.broken === 2);
    expect(seen.whole).toEqual([]);
  });

  it('takes no more from its source than the service takes', async () => {
    const { port } = await startTcpServer((socket) => socket.pause());
    let read = 0;
    const body = new Readable({
      read() {
        read += 1;
        this.push(Buffer.alloc(64 * 1024));
      },
    });
    const sent = codeOf(client(`http://127.0.0.1:${port}`).send(body, { timeoutMs: 1_000 }));
    expect(await sent).toBe(Code.DeadlineExceeded);
    expect(read * 64 * 1024).toBeLessThan(32 * MIB);
  });

  it('is waited for when the client is closed', async () => {
    const { url, seen } = await startStore();
    const bodies = client(url);
    const body = new Readable({ read: () => undefined });
    const sent = bodies.send(body);
    body.push('x');
    await eventually(() => seen.requestIds.length === 1);
    let isClosed = false;
    const closed = bodies.close().then(() => {
      isClosed = true;
    });
    body.push('y');
    await eventually(() => body.readableLength === 0);
    expect(isClosed).toBe(false);
    body.push(null);
    expect((await sent).byteSize).toBe(2n);
    await closed;
  });
});

describe('a body that passes through a hop', () => {
  it.each(['FIN', 'RST'])('never arrives as whole when its sender is cut off by %s, wherever that is', async (how) => {
    const { url, seen } = await startStore();
    const bodies = client(url);
    const outcomes: unknown[] = [];
    const hop = createServer((req, res) => {
      const length = req.headers['content-length'];
      bodies.send(req, { byteSize: length === undefined ? undefined : Number(length) }).then(
        () => res.end('stored'),
        (err: unknown) => {
          outcomes.push(ConnectError.from(err).code);
          res.destroy();
        },
      );
    });
    await new Promise<void>((resolve) => hop.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      hop.closeAllConnections();
      hop.close();
    });
    const { port } = hop.address() as AddressInfo;
    const size = MIB;
    const heads = [`Content-Length: ${size}\r\n\r\n`, `Transfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n`];
    for (let i = 0; i < 60; i += 1) {
      const before = seen.requestIds.length;
      const { socket, pour, ended } = await openRawClient(port);
      socket.write(`PUT / HTTP/1.1\r\nHost: x\r\n${heads[i % 2]}`);
      // All of the bytes may have come, and yet not the end of a chunked body.
      await pour(i % 6 === 5 && i % 2 === 1 ? size : Math.floor((size * (i % 6)) / 6));
      if (i % 3 !== 0) await eventually(() => seen.requestIds.length > before);
      if (how === 'FIN') socket.end();
      else socket.resetAndDestroy();
      await ended;
    }
    await eventually(() => outcomes.length >= seen.broken && seen.broken === seen.requestIds.length);
    expect(seen.broken).toBeGreaterThanOrEqual(40);
    expect(seen.whole).toEqual([]);
    expect(new Set(outcomes)).toEqual(new Set([Code.Canceled]));
    expect((await fetch(`http://127.0.0.1:${port}`, { method: 'PUT', body: 'x' })).status).toBe(200);
    expect(seen.whole).toHaveLength(1);
  });
});
