import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { trackConnections } from '@latchkey/kit/http/connections';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { expect, it, onTestFinished } from 'vitest';
import { boundBody } from './body-deadline.ts';

const BODY_MS_MAX = 100;

async function open() {
  const server = createServer((req, res) => {
    boundBody(req, res, BODY_MS_MAX);
    if (req.url === '/begun') res.writeHead(200, { 'content-length': 1_000 }).write('begun');
    else if (req.url === '/unread') setTimeout(() => res.end('answer'), BODY_MS_MAX * 2);
    else answerAtEnd(req, res);
  });
  const answerAtEnd = (req: IncomingMessage, res: ServerResponse) =>
    req.resume().once('end', async () => {
      // An answer may take its time.
      await delay(BODY_MS_MAX * 2);
      res.end('answer');
    });
  trackConnections(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return openRawClient((server.address() as AddressInfo).port);
}

it('a body that does not come in time is answered with 408 and the envelope', async () => {
  const { socket, received, ended } = await open();
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1234');
  socket.once('end', () => socket.end());
  expect(await ended).toBe('end');
  expect(received()).toMatch(/^HTTP\/1\.1 408 .*x-request-id: .*"code":"bad_request"/is);
});

it('an answer that has begun is cut off rather than mixed with another', async () => {
  const { socket, received, ended } = await open();
  socket.write('POST /begun HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1234');
  socket.once('end', () => socket.end());
  await ended;
  expect(received()).toMatch(/begun$/);
});

it.each(['/', '/unread'])('a body that does come in time is answered whenever that may be: %s', async (path) => {
  const { socket, received } = await open();
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1234`);
  socket.write('5');
  await once(socket, 'data');
  expect(received()).toMatch(/^HTTP\/1\.1 200 .*answer$/s);
  socket.destroy();
});
