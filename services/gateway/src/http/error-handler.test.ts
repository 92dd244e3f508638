import { gzipSync } from 'node:zlib';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const { url: redisUrl } = await testRedis();
  const accounts = {
    signUp: () => {
      throw new Error('a defect with a secret in its message');
    },
  };
  gateway = await startTestGateway({ redisUrl, env: { RATE_LIMIT_IP_PER_MINUTE: '10000' }, accounts });
});
afterAll(() => gateway.service.stop());

const get = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${gateway.baseUrl}${path}`, { headers, redirect: 'manual' });
  return { status: response.status, body: JSON.parse(await response.text()) as Record<string, unknown> };
};

describe('a file of the documentation', () => {
  it.each([
    '/docs/static/%00',
    '/docs/static/a%00b',
    '/docs/static/%5c..%5c',
    '/docs/static/..%2f..%2fpackage.json',
    '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json',
    `/docs/static/${'a'.repeat(300)}`,
    `/docs/static/${'a/'.repeat(3_000)}`,
    '/docs/static/.hidden',
    '/docs/static/nothing.js',
  ])('that there is none such is not found, and no failure: %s', async (path) => {
    expect(await get(path)).toEqual({ status: 404, body: { success: false, code: 'not_found', message: 'Not found' } });
  });

  it.each([
    { range: 'bytes=99999999-' },
    { range: 'bytes=abc' },
    { 'if-match': '"x"' },
    { 'if-unmodified-since': 'Mon, 01 Jan 2001 00:00:00 GMT' },
  ])('that can’t be had so is refused, and no failure: %j', async (headers) => {
    const { status, body } = await get('/docs/static/swagger-ui.css', headers as Record<string, string>);
    expect([status, body.code]).toEqual([400, 'bad_request']);
  });
});

describe('a defect of a service', () => {
  it('is answered with the envelope, the id of the error and nothing else', async () => {
    const response = await fetch(`${gateway.baseUrl}/api/v1/auth/sign-up`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': 'the-id' },
      body: JSON.stringify({ username: 'ada', email: 'ada@example.com', password: 'analytical engine' }),
    });
    const message = 'Internal server error. Error id: the-id';
    expect([response.status, await response.json()]).toEqual([500, { success: false, code: 'INTERNAL_ERROR', message }]);
  });
});

describe('a JSON body', () => {
  const post = async (body: Uint8Array<ArrayBuffer>, encoding: string) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    const response = await fetch(`${gateway.baseUrl}/api/v1/auth/sign-in`, { method: 'POST', headers, body });
    return [response.status, await response.json()];
  };
  const invalid = (path: string) => ({
    success: false,
    code: 'VALIDATION_ERROR',
    message: 'Request does not match the schema',
    details: expect.arrayContaining([{ path, message: expect.any(String) }]),
  });

  it.each(['gzip', 'br', 'identity, gzip'])('that is encoded is of no type that is taken: %s', async (encoding) => {
    expect(await post(new Uint8Array(gzipSync('{}')), encoding)).toEqual([415, invalid('header.content-encoding')]);
    expect(await post(new TextEncoder().encode('{}'), encoding)).toEqual([415, invalid('header.content-encoding')]);
  });

  it('may be said not to be encoded', async () => {
    expect(await post(new TextEncoder().encode('{}'), 'identity')).toEqual([400, invalid('body.email')]);
  });
});
