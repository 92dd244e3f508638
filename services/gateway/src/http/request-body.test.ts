import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { startNodeServer } from '@latchkey/kit/testing/servers';
import { describe, expect, it } from 'vitest';
import { boundBody, withoutIdleTimeout } from './request-body.ts';

const SILENCE_MS = 100;

async function serve(handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>, timeoutMs = SILENCE_MS) {
  const { open } = await startNodeServer(
    (req, res) => void handle(req, res),
    (server) => server.setTimeout(timeoutMs),
  );
  return open();
}

const HEAD = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n';

describe('a client whose bytes are read', () => {
  it('may be silent for longer than others', async () => {
    const client = await serve(async (req, res) => {
      await withoutIdleTimeout(req, () => delay(SILENCE_MS * 5));
      res.end('done');
    });
    client.socket.write(HEAD);
    await Promise.race([once(client.socket, 'data'), client.ended]);
    expect(client.received()).toMatch(/done$/);
  });

  it('may not be silent for longer after its bytes were read', async () => {
    const client = await serve(async (req) => withoutIdleTimeout(req, async () => undefined));
    client.socket.write(HEAD);
    const startedAt = performance.now();
    client.socket.once('end', () => client.socket.end());
    await client.ended;
    expect(performance.now() - startedAt).toBeLessThan(SILENCE_MS * 20);
  });

  it('that goes away is the reason of the error, not a defect', async () => {
    const failures: unknown[] = [];
    const ended = Promise.withResolvers<void>();
    const client = await serve(async (req) => {
      const failed = withoutIdleTimeout(req, async () => {
        await once(req, 'close');
        throw new Error('cut off');
      });
      await failed.catch((err: unknown) => failures.push(err));
      ended.resolve();
    });
    client.socket.write(HEAD);
    client.socket.resetAndDestroy();
    await ended.promise;
    expect(failures).toMatchObject([{ reason: 'request_malformed' }]);
  });
});

describe('a request body', () => {
  const BODY_MS_MAX = 100;
  const serveBounded = () =>
    serve(async (req, res) => {
      boundBody(req, res, BODY_MS_MAX);
      if (req.url === '/begun') res.writeHead(200, { 'content-length': 1_000 }).write('begun');
      else req.resume().once('end', () => setTimeout(() => res.end('late response'), BODY_MS_MAX * 2));
    }, 10_000);

  it.each([
    ['/', '1234', /^HTTP\/1\.1 408 .*x-request-id: .*"code":"bad_request"/is],
    ['/begun', '1234', /begun$/],
    ['/', '12345', /^HTTP\/1\.1 200 .*late response$/s],
  ])('to %s of %s bytes must arrive in time, and its response may be late', async (path, body, expected) => {
    const { socket, received, ended } = await serveBounded();
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n${body}`);
    socket.once('end', () => socket.end());
    await ended;
    expect(received()).toMatch(expected);
  });
});
