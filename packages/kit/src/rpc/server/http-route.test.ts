import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it } from 'vitest';
import { defineErrors } from '../../errors/errors.ts';
import { AUTHORIZATION, startTestServer } from '../../testing/servers.ts';
import type { HttpRoute } from './http-route.ts';

const { file_missing } = defineErrors({ file_missing: { kind: 'not_found', message: 'Not found' } });

const open: HttpRoute = {
  method: 'GET',
  path: '/open/',
  needsCredential: false,
  async handle(req, res, requestId, isService) {
    if (req.url?.endsWith('missing')) throw file_missing();
    if (req.url?.endsWith('broken')) throw new Error('a secret of the database');
    if (req.url?.endsWith('late')) {
      res.writeHead(200, { 'content-length': 10 }).write('12345');
      throw new Error('too late');
    }
    if (!req.url?.endsWith('silent')) res.end(`${requestId} ${req.url} ${isService}`);
  },
};

const closed: HttpRoute = {
  method: 'PUT',
  path: '/closed',
  needsCredential: true,
  async handle(req, res) {
    for await (const _ of req);
    res.end('done');
  },
};

const start = (limits = {}) => startTestServer([], { httpRoutes: [open, closed], limits });
const put = (length: number) =>
  `PUT /closed HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\nContent-Length: ${length}\r\n\r\n`;

describe('an HTTP route', () => {
  it('is found by its method and its path, or the beginning of its path', async () => {
    const { url } = await start();
    const headers = { 'x-request-id': 'r1', authorization: AUTHORIZATION };
    expect(await (await fetch(`${url}/open/a/b?c`, { headers })).text()).toBe('r1 /open/a/b?c true');
    expect((await fetch(`${url}/closed?x`, { headers, method: 'PUT', body: 'x' })).status).toBe(200);
    for (const path of ['/open', '/closed', '/closed/x']) expect((await fetch(url + path, { headers })).status).toBe(404);
    expect((await fetch(`${url}/open/a`, { headers, method: 'POST' })).status).toBe(404);
  });

  it('needs a credential unless it is open, and replaces an odd request id', async () => {
    const { url } = await start();
    for (const headers of [{}, { authorization: 'Bearer x' }]) {
      const rejected = await fetch(`${url}/closed`, { method: 'PUT', body: 'x', headers });
      expect([rejected.status, ((await rejected.json()) as { code: string }).code]).toEqual([401, 'unauthenticated']);
    }
    const opened = await fetch(`${url}/open/a`, { headers: { 'x-request-id': 'a b' } });
    expect(await opened.text()).toMatch(/^[\da-f-]{36} \/open\/a false$/);
  });

  it('answers errors as a unary call does, and masks and logs a defect without the rest of the path', async () => {
    const { url, lines } = await start();
    const rejected = await fetch(`${url}/open/missing`);
    expect([rejected.status, await rejected.json()]).toMatchObject([404, { code: 'not_found', details: [{}] }]);
    for (const path of ['broken', 'silent']) {
      const broken = await fetch(`${url}/open/${path}`);
      expect([broken.status, await broken.json()]).toEqual([500, { code: 'internal', message: 'internal error' }]);
    }
    const failed = lines.filter(({ msg }) => msg === 'rpc failed');
    expect(failed).toMatchObject([{ rpc: 'GET /open/', reason: 'internal', err: { message: 'a secret of the database' } }, {}]);
    expect(JSON.stringify(lines)).not.toMatch(/open\/(missing|broken|silent)/);
  });

  it('cuts off a response that fails half way', async () => {
    const { url } = await start();
    const response = await fetch(`${url}/open/late`);
    await expect(response.text()).rejects.toThrow();
  });

  it('survives clients that go away, and logs no defect', async () => {
    const { url, port, lines } = await start();
    for (let i = 0; i < 20; i += 1) {
      const { socket } = await openRawClient(port);
      socket.write(`${put(100)}1`);
      if (i % 2 === 0) socket.resetAndDestroy();
      else socket.end();
    }
    await eventually(() => lines.filter(({ msg }) => msg === 'rpc rejected').length >= 10);
    expect(lines.filter(({ msg }) => msg === 'rpc failed')).toEqual([]);
    expect((await fetch(`${url}/open/a`)).status).toBe(200);
  });

  it('counts as a call, bounds its body itself, and is awaited by a server that stops', async () => {
    const { url, port, stop } = await start({ bodyMs: 100, calls: 1 });
    const { socket, received } = await openRawClient(port);
    socket.write(`${put(4)}ab`);
    await eventually(async () => expect((await fetch(`${url}/open/a`)).status).toBe(503));
    const stopped = stop();
    // Longer than streams go on after the last call.
    expect(await Promise.race([stopped, delay(1_800, 'waiting')])).toBe('waiting');
    socket.end('cd');
    await stopped;
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 200 .*done/s));
  });
});
