import { defineErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { expect, it } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

const RETURN_URL = 'https://dashboard.test/welcome?from=issuer';
const START = '/api/v1/auth/oidc/start?issuer=nowhere';
const errors = defineErrors({
  sign_up_closed: { kind: 'forbidden', message: 'Closed', code: 'sign_up_closed' },
  unknown_issuer: { kind: 'not_found', message: 'Unknown' },
  sign_in_failed: { kind: 'unauthenticated', message: 'Wrong' },
});
const gateway = useTestGateway({
  env: { OIDC_RETURN_URL: RETURN_URL, AUTH_ATTEMPTS_PER_MINUTE: '3', TRUSTED_PROXIES: 'loopback' },
  accounts: {
    signIn: async () => {
      throw toConnectError(errors.sign_in_failed());
    },
  },
  oidc: {
    finishOidc: async () => {
      throw toConnectError(errors.sign_up_closed());
    },
    startOidc: async () => {
      throw toConnectError(errors.unknown_issuer());
    },
  },
});

async function visit(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.baseUrl + path, { redirect: 'manual', headers });
  await response.body?.cancel();
  return { to: [response.status, response.headers.get('location')], headers: response.headers };
}

it('a browser that comes back with an error goes to OIDC_RETURN_URL, without a session or the URL of the code', async () => {
  const { to, headers } = await visit('/api/v1/auth/oidc/callback?code=a&state=b');
  expect(to).toEqual([302, `${RETURN_URL}&error=sign_up_closed`]);
  expect([headers.get('referrer-policy'), headers.get('set-cookie')]).toEqual(['no-referrer', null]);
});

it('visits are limited by themselves, and not spent by pictures of other sites', async () => {
  const address = { 'x-forwarded-for': '198.51.100.1' };
  const embedded = { ...address, 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' };
  for (let i = 0; i < 4; i += 1) expect((await visit(START, embedded)).to[0]).toBe(403);
  const visits = [];
  for (let i = 0; i < 4; i += 1) visits.push((await visit(START, address)).to);
  expect(visits).toEqual([...Array(3).fill([302, `${RETURN_URL}&error=not_found`]), [429, null]]);
  expect((await visit('/api/v1/auth/oidc/callback?code=a&state=b', address)).to[0]).toBe(429);
  const body = { email: 'ada@example.com', password: 'a wrong password' };
  expect((await gateway.send('POST', '/api/v1/auth/sign-in', { body, headers: address })).status).toBe(401);
});
