import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Code } from '@connectrpc/connect';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { DomainError, defineErrors, fromConnectError } from '../../errors/errors.ts';
import { CREDENTIAL, codeOf, startTcpServer, startTestServer } from '../../testing/servers.ts';
import { bodyRoute } from '../server/http-route.ts';
import { type BodyCall, createBodyClient } from './body-client.ts';

const MIB = 1024 * 1024;
const { file_rejected } = defineErrors({ file_rejected: { kind: 'too_large', message: 'Too large' } });

/** A server of bodies, and what happened to each. */
async function startStore(byteSizeMax = Number.POSITIVE_INFINITY) {
  const seen = { whole: 0, broken: 0, requestIds: [] as string[] };
  const handle = async (req: IncomingMessage, requestId: string) => {
    seen.requestIds.push(requestId);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of req as AsyncIterable<Buffer>) {
        size += chunk.byteLength;
        if (size > byteSizeMax) throw file_rejected({ policy: 'store', limit: 1, windowMs: 0, retryMs: 0 });
        chunks.push(chunk);
      }
    } catch (err) {
      if (!(err instanceof DomainError)) seen.broken += 1;
      throw err;
    }
    seen.whole += 1;
    return {
      id: String(req.headers['x-name']),
      byteSize: BigInt(size),
      checksum: hash('sha256', Buffer.concat(chunks), 'buffer'),
    };
  };
  const route = bodyRoute({ path: '/bodies', output: UploadFileResponseSchema, handle });
  const server = await startTestServer([], { httpRoutes: [route] });
  return { ...server, seen };
}

function client(url: string, credential = CREDENTIAL) {
  const { send } = createBodyClient(url, credential);
  const defaults = { path: '/bodies', byteSize: undefined, requestId: 'r1', timeoutMs: 10_000 };
  return {
    send: (body: Readable, call: Partial<BodyCall> = {}) => send({ ...defaults, body, ...call }, UploadFileResponseSchema),
  };
}

const pieces = (count: number) => Readable.from(Array.from({ length: count }, (_, i) => Buffer.alloc(MIB, i)));

/** A body that begins and does not go on by itself. */
function stalled(): Readable {
  const body = new Readable({ read: () => undefined });
  body.push('a beginning');
  return body;
}

describe('a call whose request is a body', () => {
  it.each([
    [5, undefined],
    [0, 0],
  ])('carries %s MiB, declared as %s bytes', async (count, byteSize) => {
    const { url, seen } = await startStore();
    const response = await client(url).send(pieces(count), { byteSize, headers: { 'x-name': 'name' } });
    const expected = Buffer.concat(await pieces(count).toArray());
    expect(response).toMatchObject({ id: 'name', byteSize: BigInt(count * MIB) });
    expect(Buffer.from(response.checksum)).toEqual(hash('sha256', expected, 'buffer'));
    expect(seen).toMatchObject({ whole: 1, requestIds: ['r1'] });
  });

  it('hears of a rejection while it sends', async () => {
    const { url, seen } = await startStore(3 * MIB);
    const body = pieces(50);
    const err = await client(url)
      .send(body, { byteSize: 50 * MIB })
      .catch((thrown: unknown) => thrown);
    expect(fromConnectError(err)).toMatchObject({ reason: 'file_rejected', httpStatus: 413, metadata: { policy: 'store' } });
    expect(seen).toMatchObject({ whole: 0, broken: 0 });
    expect(body.destroyed).toBe(false);
  });

  it('fails as unauthenticated without the credential, and as unavailable without a listener', async () => {
    const { url, stop } = await startStore();
    expect(await codeOf(client(url, 'wrong').send(pieces(20)))).toBe(Code.Unauthenticated);
    await stop();
    expect(await codeOf(client(url).send(pieces(20)))).toBe(Code.Unavailable);
  });

  const CUT = 'HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 10\r\n\r\n123';
  it.each([
    [0, '', Code.Unavailable],
    [5 * MIB, CUT, Code.Unknown],
  ])('fails when the service goes away after %s bytes and the response %j', async (afterBytes, response, code) => {
    let received = 0;
    const { port } = await startTcpServer((socket) => {
      socket.on('data', (chunk) => {
        received += chunk.byteLength;
        if (received >= afterBytes) socket.end(response, () => socket.destroy());
      });
    });
    expect(await codeOf(client(`http://127.0.0.1:${port}`).send(pieces(5), { byteSize: 5 * MIB }))).toBe(code);
  });

  it('fails when a success comes before the body was sent', async () => {
    const { port } = await startTcpServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n');
    });
    expect(await codeOf(client(`http://127.0.0.1:${port}`).send(stalled()))).toBe(Code.Internal);
  });

  it('is incomplete for the service when it ends early: deadline, cancellation, lost source, size, cut', async () => {
    const { url, seen } = await startStore();
    const { send } = client(url);
    expect(await codeOf(send(stalled(), { timeoutMs: 100 }))).toBe(Code.DeadlineExceeded);
    await eventually(() => seen.broken === 1);
    const controller = new AbortController();
    const canceled = codeOf(send(stalled(), { signal: controller.signal }));
    await eventually(() => seen.requestIds.length === 2);
    controller.abort();
    expect(await canceled).toBe(Code.Canceled);
    const source = stalled();
    const cut = codeOf(send(source));
    await eventually(() => seen.requestIds.length === 3);
    source.destroy();
    expect([await cut, await codeOf(send(source))]).toEqual([Code.Canceled, Code.Canceled]);
    expect(await codeOf(send(pieces(2), { byteSize: 3 * MIB }))).toBe(Code.Canceled);
    expect(await codeOf(send(pieces(2), { byteSize: MIB + 1 }))).toBe(Code.Canceled);
    // A request that was cut off ends like any other, but is not complete.
    expect(await codeOf(send(Object.assign(pieces(2), { complete: false })))).toBe(Code.Canceled);
    await eventually(() => seen.broken === 6);
    expect(seen.whole).toBe(0);
  });

  it('is read no faster than the service takes it', async () => {
    const { port } = await startTcpServer((socket) => socket.pause());
    let read = 0;
    const body = new Readable({
      read() {
        read += 1;
        this.push(Buffer.alloc(64 * 1024));
      },
    });
    const sent = codeOf(client(`http://127.0.0.1:${port}`).send(body, { timeoutMs: 300 }));
    expect(await sent).toBe(Code.DeadlineExceeded);
    expect(read * 64 * 1024).toBeLessThan(32 * MIB);
  });
});
