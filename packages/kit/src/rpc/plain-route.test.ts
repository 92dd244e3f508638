import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it } from 'vitest';
import { defineErrors } from '../errors.ts';
import { CREDENTIAL, startTestServer } from '../testing/servers.ts';
import type { PlainRoute } from './plain-route.ts';

const { file_missing } = defineErrors({ file_missing: { kind: 'not_found', message: 'Not found' } });
const authorization = `Bearer ${CREDENTIAL}`;

const open: PlainRoute = {
  method: 'GET',
  path: '/open/',
  needsCredential: false,
  async handle(req, res, requestId) {
    if (req.url?.endsWith('missing')) throw file_missing();
    if (req.url?.endsWith('broken')) throw new Error('a secret of the database');
    if (req.url?.endsWith('late')) {
      res.writeHead(200, { 'content-length': 10 }).write('12345');
      throw new Error('too late');
    }
    if (!req.url?.endsWith('silent')) res.end(`${requestId} ${req.url}`);
  },
};

const closed: PlainRoute = {
  method: 'PUT',
  path: '/closed',
  needsCredential: true,
  async handle(req, res) {
    for await (const _ of req);
    res.end('done');
  },
};

const start = () => startTestServer([], { plainRoutes: [open, closed] });

describe('a plain route', () => {
  it('is found by its method and its path, or by what its path begins with', async () => {
    const { url } = await start();
    const headers = { 'x-request-id': 'r1', authorization };
    expect(await (await fetch(`${url}/open/a/b?c`, { headers })).text()).toBe('r1 /open/a/b?c');
    expect((await fetch(`${url}/closed?x`, { headers, method: 'PUT', body: 'x' })).status).toBe(200);
    for (const path of ['/open', '/closed', '/closed/x']) expect((await fetch(url + path, { headers })).status).toBe(404);
    expect((await fetch(`${url}/open/a`, { headers, method: 'POST' })).status).toBe(404);
  });

  it('is answered to a service of the deployment alone where it needs a credential', async () => {
    const { url } = await start();
    const refused = await fetch(`${url}/closed`, { method: 'PUT', body: 'x' });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([401, 'unauthenticated']);
    const wrong = await fetch(`${url}/closed`, { method: 'PUT', body: 'x', headers: { authorization: 'Bearer x' } });
    expect(wrong.status).toBe(401);
    expect((await fetch(`${url}/open/a`)).status).toBe(200);
  });

  it('answers a refusal as a unary call does, and masks and logs a defect without the rest of the path', async () => {
    const { url, lines } = await start();
    const refused = await fetch(`${url}/open/missing`);
    expect([refused.status, await refused.json()]).toMatchObject([404, { code: 'not_found', details: [{}] }]);
    for (const path of ['broken', 'silent']) {
      const broken = await fetch(`${url}/open/${path}`);
      expect([broken.status, await broken.json()]).toEqual([500, { code: 'internal', message: 'internal error' }]);
    }
    const failed = lines.filter(({ msg }) => msg === 'rpc failed');
    expect(failed).toMatchObject([{ rpc: 'GET /open/', reason: 'internal', err: { message: 'a secret of the database' } }, {}]);
    expect(JSON.stringify(lines)).not.toMatch(/open\/(missing|broken|silent)/);
  });

  it('cuts off an answer that fails half way, so that nobody takes it for whole', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/open/late`);
    await expect(answer.text()).rejects.toThrow();
  });

  it('outlives clients that go away, which is no defect', async () => {
    const { url, lines } = await start();
    const head = `PUT /closed HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Length: 100\r\n\r\n1`;
    for (let i = 0; i < 20; i += 1) {
      const { socket } = await openRawClient(Number(new URL(url).port));
      socket.write(head);
      if (i % 2 === 0) socket.resetAndDestroy();
      else socket.end();
    }
    await eventually(() => lines.filter(({ msg }) => msg === 'rpc refused').length >= 10);
    expect(lines.filter(({ msg }) => msg === 'rpc failed')).toEqual([]);
    expect((await fetch(`${url}/open/a`)).status).toBe(200);
  });

  it('is waited for by a server that stops', async () => {
    const { url, stop } = await start();
    const { socket, received } = await openRawClient(Number(new URL(url).port));
    socket.write(`PUT /closed HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Length: 4\r\n\r\nab`);
    await fetch(`${url}/open/a`);
    const stopped = stop();
    const early = await Promise.race([stopped.then(() => true), delay(1_500, false)]);
    expect(early).toBe(false);
    socket.end('cd');
    await stopped;
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 200 .*done/s));
  });
});
