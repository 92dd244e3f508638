import { randomUUID } from 'node:crypto';
import type { HandlerContext } from '@connectrpc/connect';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ACCOUNT, startTestGateway, type TestGateway } from './testing/test-gateway.ts';

const [KEY_ID, SESSION_ID] = [randomUUID(), randomUUID()];
const APPLICATION_ID = randomUUID();

/** The header of each call that a service got, by the call's name. */
let said: Record<string, string | null> = {};
beforeEach(() => {
  said = {};
});

const note =
  (name: string, answer: object = {}) =>
  async (_request: object, { requestHeader }: HandlerContext) => {
    said[name] = requestHeader.get('x-latchkey-actor');
    return answer;
  };

let gateway: TestGateway;
beforeAll(async () => {
  const { url: redisUrl } = await testRedis();
  const session = { token: 'a-token', csrfToken: 'csrf', expiresAt: { seconds: 4_000_000_000n, nanos: 0 } };
  gateway = await startTestGateway({
    redisUrl,
    env: { TRUSTED_PROXIES: 'loopback' },
    accounts: { signIn: note('signIn', { account: ACCOUNT, session }) },
    applications: {
      getApplicationSettings: note('getApplicationSettings', { settings: { version: '1', status: 1 } }),
      updateApplicationSetting: note('updateApplicationSetting'),
      findOwnedApplications: note('findOwnedApplications', { applicationIds: [APPLICATION_ID] }),
    },
    authentication: {
      authenticate: async ({ credential }, { requestHeader }) => {
        said.authenticate = requestHeader.get('x-latchkey-actor');
        const rest = { accountId: randomUUID(), username: 'ada', allApplications: true };
        return credential.case === 'apiKey'
          ? { principal: { kind: PrincipalKind.API_KEY, credentialId: KEY_ID, scopes: SCOPES, ...rest } }
          : { principal: { kind: PrincipalKind.SESSION, credentialId: SESSION_ID, csrfToken: 'csrf', ...rest } };
      },
    },
  });
});
afterAll(() => gateway.service.stop());

const SCOPES = ['applications:read', 'applications:update'];
const KEY = { authorization: 'Bearer a-key' };
const SESSION = { cookie: 'session=a', 'x-csrf-token': 'csrf' };

async function send(method: string, path: string, headers: Record<string, string>, body?: object): Promise<number> {
  const response = await fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  await response.body?.cancel();
  return response.status;
}

const change = (headers: Record<string, string>) =>
  send('PATCH', `/panel/update-application-settings?applicationId=${APPLICATION_ID}`, headers, { field: 'version', value: '2' });

it('names the key and the address of whoever changes something', async () => {
  expect(await change(KEY)).toBe(200);
  expect(said).toEqual({ authenticate: null, updateApplicationSetting: `api_key ${KEY_ID} 127.0.0.1` });
});

it('names the session, and the client behind a trusted proxy', async () => {
  expect(await change({ ...SESSION, 'x-forwarded-for': '2001:db8::1' })).toBe(200);
  expect(said.updateApplicationSetting).toBe(`session ${SESSION_ID} 2001:db8::1`);
});

it('names nobody but an address where anybody may call', async () => {
  const body = { email: 'ada@example.com', password: 'a long passphrase' };
  expect(await send('POST', '/auth/sign-in', SESSION, body)).toBe(200);
  expect(said.signIn).toBe('anonymous - 127.0.0.1');
});

it('says nothing with a read', async () => {
  const path = `/panel/get-application-settings?applicationId=${APPLICATION_ID}`;
  for (const headers of [KEY, SESSION]) expect(await send('GET', path, headers)).toBe(200);
  expect(said.getApplicationSettings).toBeNull();
});

it('takes no client’s word for who it is', async () => {
  const forged = `session ${randomUUID()} 203.0.113.99`;
  expect(await change({ ...KEY, 'x-latchkey-actor': forged })).toBe(200);
  expect(said.updateApplicationSetting).toBe(`api_key ${KEY_ID} 127.0.0.1`);
  await send('GET', `/panel/get-application-settings?applicationId=${APPLICATION_ID}`, { ...KEY, 'x-latchkey-actor': forged });
  expect(said.getApplicationSettings).toBeNull();
});
