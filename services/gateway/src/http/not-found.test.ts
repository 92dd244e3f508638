import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const { url: redisUrl } = await testRedis();
  gateway = await startTestGateway({ redisUrl });
});
afterAll(() => gateway.service.stop());

const BODIES: Array<[string, Record<string, string>, string]> = [
  ['no JSON', { 'content-type': 'application/json' }, '{'],
  ['larger than a body may be', { 'content-type': 'application/json' }, `"${'x'.repeat(70_000)}"`],
  ['of a type that is none', { 'content-type': '///' }, 'x'],
  ['of another type', { 'content-type': 'text/plain' }, 'x'],
  ['of no type', {}, 'x'],
];

/** What a request is answered whose body no route takes. */
async function answerTo(method: string, path: string, headers: Record<string, string>, body: string) {
  const response = await fetch(`${gateway.baseUrl}${path}`, { method, headers, body: Buffer.from(body) });
  const { code } = (await response.json()) as { code: string };
  return [response.status, code, response.headers.get('allow')];
}

describe.each(BODIES)('a body that is %s', (_, headers, body) => {
  it.each(['POST', 'DELETE', 'OPTIONS', 'QUERY'])('does not hide that there is no such route, to %s', async (method) => {
    expect(await answerTo(method, '/api/v1/panel/get-presigned-upload-url', headers, body)).toEqual([404, 'not_found', null]);
  });

  it.each(['PUT', 'DELETE', 'OPTIONS', 'QUERY'])('does not hide that the method is another one than %s', async (method) => {
    const refusal = [405, 'bad_request', 'POST'];
    expect(await answerTo(method, '/api/v1/panel/create-application', headers, body)).toEqual(refusal);
    expect(await answerTo(method, '/api/v1/panel/upload-file', headers, body)).toEqual(refusal);
  });
});
