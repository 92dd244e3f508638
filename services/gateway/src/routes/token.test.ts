import { TOKEN_EXCHANGE_GRANT, TOKEN_TYPES } from '@latchkey/contract/trusted-issuer';
import { commonErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { expect, test } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

const EXCHANGED = { accessToken: 'a key', expiresInSeconds: 60, scopes: ['files:read'] };
let exchanged = 0;
const gateway = useTestGateway({
  env: { AUTH_ATTEMPTS_PER_MINUTE: '20' },
  trustedIssuers: {
    exchangeToken: ({ subjectToken }) => {
      exchanged += 1;
      if (subjectToken === 'unavailable') throw toConnectError(commonErrors.dependency_unavailable());
      if (subjectToken === 'defect') throw new Error('not a "JWT"');
      return EXCHANGED;
    },
  },
});

const FORM = { grant_type: TOKEN_EXCHANGE_GRANT, subject_token: 'a.b.c', subject_token_type: TOKEN_TYPES.jwt };
const FORM_TYPE = 'application/x-www-form-urlencoded';

async function post(body: string | URLSearchParams, headers: Record<string, string> = { 'content-type': FORM_TYPE }) {
  const url = `${gateway.baseUrl}/api/v1/auth/token`;
  const response = await fetch(url, { method: 'POST', body: String(body), headers });
  const json = (await response.json()) as { error?: string; error_description?: string };
  return { status: response.status, headers: response.headers, json, outcome: `${response.status} ${json.error ?? ''}`.trim() };
}
const form = (change: object) => new URLSearchParams(Object.entries({ ...FORM, ...change }) as Array<[string, string]>);

test('ignores unknown and empty parameters', async () => {
  const { outcome, headers } = await post(form({ audience: '', resource: 'x' }));
  expect([outcome, headers.get('cache-control'), headers.get('pragma')]).toEqual(['200', 'no-store', 'no-cache']);
});

test.each<[string, string, string]>([
  ['another grant', 'grant_type=password&username=a&password=b', '400 unsupported_grant_type'],
  ['no grant', 'subject_token=a', '400 invalid_request'],
  ['another type of token', String(form({ subject_token_type: TOKEN_TYPES.accessToken })), '400 invalid_request'],
  ['another type of key', String(form({ requested_token_type: TOKEN_TYPES.jwt })), '400 invalid_request'],
  ['a parameter twice', `${form({})}&subject_token=x`, '400 invalid_request'],
  ['a body over 32 KiB', String(form({ subject_token: 'a'.repeat(33_000) })), '400 invalid_request'],
  ['no body', '', '400 invalid_request'],
  ['a service that is down', String(form({ subject_token: 'unavailable' })), '503 temporarily_unavailable'],
  ['a defect', String(form({ subject_token: 'defect' })), '500 server_error'],
])('answers %s with an error of RFC 6749', async (_what, body, expected) => {
  const { outcome, json, headers } = await post(body);
  expect(outcome).toBe(expected);
  expect(Object.keys(json)).toEqual(['error', 'error_description']);
  expect(json.error_description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(headers.get('cache-control')).toBe('no-store');
});

test.each([
  { 'content-type': 'application/json' },
  { 'content-type': 'text/plain' },
  { 'content-type': FORM_TYPE, 'content-encoding': 'gzip' },
  { 'content-type': FORM_TYPE, origin: 'https://evil.test' },
])('rejects %j', async (headers) => {
  expect((await post(form({}), headers)).outcome).toBe('400 invalid_request');
});

test('asks for a form where the request has no body', async () => {
  const untyped = await fetch(`${gateway.baseUrl}/api/v1/auth/token`, { method: 'POST' });
  const text = 'header.content-type must be application/x-www-form-urlencoded';
  expect([untyped.status, await untyped.json()]).toEqual([400, { error: 'invalid_request', error_description: text }]);
  expect((await post('')).json.error_description).toMatch(/^grant_type is required;/);
});

test('a flood from one address is rejected before the service is called', async () => {
  const before = exchanged;
  const answers = await Promise.all(Array.from({ length: 30 }, () => post(form({}))));
  const limited = answers.filter(({ status }) => status === 429);
  expect(limited.length).toBeGreaterThanOrEqual(10);
  expect(exchanged - before).toBe(30 - limited.length);
  expect(limited[0]?.json.error).toBe('temporarily_unavailable');
  expect(Number(limited[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
});
