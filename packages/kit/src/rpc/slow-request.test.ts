import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it } from 'vitest';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import type { PlainRoute } from './plain-route.ts';

const BODY_MS_MAX = 100;

const upload: PlainRoute = {
  method: 'PUT',
  path: '/upload',
  needsCredential: false,
  async handle(req, res) {
    for await (const _ of req);
    res.end('done');
  },
};

const calls = testRoute(ApplicationService, {
  async deleteApplication() {
    // What is tested is that an answer may take longer than a body.
    await delay(BODY_MS_MAX * 3);
    return {};
  },
});

async function open() {
  const { url } = await startTestServer([calls], { plainRoutes: [upload], bodyMsMax: BODY_MS_MAX });
  return openRawClient(Number(new URL(url).port));
}

const CALL = `/${ApplicationService.typeName}/DeleteApplication`;
const head = (requestLine: string, ...lines: string[]) =>
  [`${requestLine} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${CREDENTIAL}`, ...lines, '', ''].join('\r\n');

describe('a body that does not come in time', () => {
  it.each([
    ['a call in JSON, of anyone', 'POST /grpc.health.v1.Health/Check', 'application/json'],
    ['a lean call', `POST ${CALL}`, 'application/proto'],
    ['a call of gRPC-Web', `POST ${CALL}`, 'application/grpc-web+proto'],
    ['a request for what is not there', 'POST /nowhere', 'text/plain'],
  ])('does not hold its connection: %s', async (_what, requestLine, type) => {
    const { socket, ended } = await open();
    socket.write(head(requestLine, `Content-Type: ${type}`, 'Content-Length: 50000'));
    socket.once('end', () => socket.end());
    const bytes = setInterval(() => socket.write('{'), BODY_MS_MAX / 10);
    expect(await ended.finally(() => clearInterval(bytes))).toMatch(/end|ECONNRESET|EPIPE/);
  });

  it('is for a plain route to bound', async () => {
    const { socket, received } = await open();
    socket.write(head('PUT /upload', 'Content-Length: 2'));
    socket.write('a');
    await delay(BODY_MS_MAX * 3);
    socket.write('b');
    await eventually(() => received().endsWith('done'));
    socket.destroy();
  });
});

it('a body that does come in time is answered whenever that may be', async () => {
  const { socket, received } = await open();
  for (const type of ['application/proto', 'application/json']) {
    const body = type === 'application/json' ? '{}' : '';
    const framing = body === '' ? ['Transfer-Encoding: chunked'] : [`Content-Length: ${body.length}`];
    socket.write(head(`POST ${CALL}`, `Content-Type: ${type}`, ...framing) + (body || '0\r\n\r\n'));
  }
  await eventually(() => received().match(/HTTP\/1\.1 200 /g)?.length === 2);
  socket.destroy();
});
