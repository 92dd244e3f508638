import type { Socket } from 'node:net';
import { openTcp } from '@latchkey/kit/testing/http2';
import { eventually } from '@latchkey/testkit/eventually';
import { exchangeBytes, openRawClient } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startTestGateway, type TestGatewayOptions, useTestGateway } from '../testing/test-gateway.ts';

const gateway = useTestGateway({
  accounts: {
    signUp: () => {
      throw new Error('a defect with a secret in its message');
    },
  },
});

describe('an error response', () => {
  it.each([
    '/docs/static/%00',
    '/docs/static/%5c..%5c',
    '/docs/static/..%2f..%2fpackage.json',
    '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json',
    `/docs/static/${'a/'.repeat(3_000)}`,
    '/docs/static/.hidden',
  ])('is 404 for a file that the documentation does not have: %s', async (path) => {
    const { status, envelope } = await gateway.send('GET', path);
    expect([status, envelope]).toEqual([404, { success: false, code: 'not_found', message: 'Not found' }]);
  });

  it.each([
    { range: 'bytes=99999999-' },
    { 'if-match': '"x"' },
    { 'if-unmodified-since': 'Mon, 01 Jan 2001 00:00:00 GMT' },
  ] as Record<string, string>[])('is 400 for a file of the documentation with %j', async (headers) => {
    expect((await gateway.send('GET', '/docs/static/swagger-ui.css', { headers })).outcome).toBe('400 bad_request');
  });

  it('of a defect has the envelope, and no facts but the id of the error', async () => {
    const body = { username: 'ada', email: 'ada@example.com', password: 'analytical engine' };
    const { envelope } = await gateway.send('POST', '/api/v1/auth/sign-up', { body, headers: { 'x-request-id': 'the-id' } });
    const message = 'Internal server error. Error id: the-id';
    expect(envelope).toEqual({ success: false, code: 'INTERNAL_ERROR', message });
  });

  it.each([
    ['{', { 'content-type': 'application/json' }],
    [`"${'x'.repeat(70_000)}"`, { 'content-type': 'application/json' }],
    ['x', { 'content-type': '///' }],
    ['x', {}],
  ])('says that there is no route or method, before the body is parsed: %.10s %j', async (text, headers) => {
    const send = async (method: string, path: string) => {
      const response = await fetch(gateway.baseUrl + path, { method, headers, body: Buffer.from(text) });
      return [response.status, ((await response.json()) as { code: string }).code, response.headers.get('allow')];
    };
    for (const method of ['POST', 'DELETE', 'QUERY'])
      expect(await send(method, '/api/v1/panel/get-presigned-upload-url')).toEqual([404, 'not_found', null]);
    for (const method of ['PUT', 'DELETE', 'QUERY'])
      expect(await send(method, '/api/v1/panel/upload-file')).toEqual([405, 'bad_request', 'POST']);
  });
});

it('100 Continue is sent to a client with a JSON body once, after the checks of its head', async () => {
  const begin = async (...lines: string[]) => {
    const client = await openRawClient(gateway.port);
    const head = ['POST /api/v1/auth/sign-up HTTP/1.1', 'Host: x', 'Content-Length: 2', 'Expect: 100-continue', ...lines];
    client.socket.write(`${head.join('\r\n')}\r\n\r\n`);
    await eventually(() => client.received() !== '');
    return client;
  };
  const json = 'Content-Type: application/json';
  expect((await begin(json, 'Origin: https://evil.test')).received()).toMatch(/^HTTP\/1\.1 403 /);
  const { socket, received } = await begin(json);
  expect(received()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write('{}');
  await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /));
});

describe('Strict-Transport-Security', () => {
  const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

  it('is in every response if PUBLIC_URL is https, and in none otherwise', async () => {
    const requests = [
      HEALTH,
      HEALTH.replace('healthz', 'nowhere'),
      HEALTH.replace('healthz', 'downloads/x'),
      HEALTH.replace('healthz', '%zz'),
      HEALTH.replace('Host: x\r\n', ''),
      'garbage\r\n\r\n',
      HEALTH.replace('Host: x', 'Host: x\r\nExpect: x'),
    ];
    for (const [PUBLIC_URL, policy] of [
      ['https://latchkey.example', 'max-age=31536000'],
      ['http://latchkey.example', undefined],
    ] as const) {
      const { port } = await start({ env: { PUBLIC_URL } });
      for (const bytes of requests) {
        const received = await exchangeBytes(port, bytes);
        expect(/^strict-transport-security: (.*)\r$/im.exec(received)?.[1], bytes).toBe(policy);
      }
    }
  });
});

async function start(options: TestGatewayOptions) {
  const started = await startTestGateway(options);
  onTestFinished(() => started.service.stop());
  return started;
}

describe('connections', () => {
  const openOnes = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed);

  it('are closed beyond the limit of one address, unless it is a trusted proxy, and beyond that of all', async () => {
    const env = { CONNECTIONS_PER_IP: '3', TRUSTED_PROXIES: '127.0.0.3' };
    const { baseUrl } = await start({ connectionsMax: 20, env });
    const sockets = Array.from({ length: 8 }, () => openTcp(baseUrl));
    await eventually(() => expect(openOnes(sockets)).toHaveLength(3));
    sockets.push(...Array.from({ length: 30 }, () => openTcp(baseUrl, '127.0.0.3')));
    await eventually(() => expect(openOnes(sockets)).toHaveLength(20));
    for (const socket of sockets) socket.destroy();
    await eventually(async () => (await fetch(`${baseUrl}/healthz`)).status === 200);
  });
});
