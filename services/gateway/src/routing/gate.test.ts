import { randomUUID } from 'node:crypto';
import type { HandlerContext } from '@connectrpc/connect';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { beforeEach, describe, expect, it } from 'vitest';
import { ACCOUNT, SESSION, toKey, useTestGateway } from '../testing/test-gateway.ts';

const [OWNED, KEY_ID, SESSION_ID] = [randomUUID(), randomUUID(), randomUUID()];

/** The actor header of each call that a service got, by the name of the method. */
let actors: Record<string, string | null> = {};
let isOutcomeLost = false;
beforeEach(() => {
  actors = {};
});
const record =
  (name: string, response: object = {}) =>
  async (_request: object, { requestHeader }: HandlerContext) => {
    actors[name] = requestHeader.get('x-latchkey-actor');
    return response;
  };

const gateway = useTestGateway({
  env: { TRUSTED_PROXIES: 'loopback' },
  accounts: { signIn: record('signIn', { account: ACCOUNT, session: SESSION }) },
  apiKeys: { revokeApiKey: async () => ({ apiKey: {} }) },
  applications: {
    getApplicationSettings: record('getApplicationSettings', { settings: { version: '1', status: 1 } }),
    updateApplicationSetting: async (request, context) => {
      if (isOutcomeLost) throw commonErrors.outcome_unknown();
      return record('updateApplicationSetting')(request, context);
    },
  },
  authentication: {
    authenticate: async ({ credential: { case: kind, value } }, { requestHeader }) => {
      actors.authenticate = requestHeader.get('x-latchkey-actor');
      if (value === 'lost') throw commonErrors.outcome_unknown();
      isOutcomeLost = value === 'changing';
      const session = { kind: PrincipalKind.SESSION, credentialId: SESSION_ID, csrfToken: 'csrf' };
      return toKey(['applications:read', 'applications:update'], kind === 'apiKey' ? { credentialId: KEY_ID } : session);
    },
  },
});

const asKey = (key: string) => ({ authorization: `Bearer ${key}` });
const AS_SESSION = { cookie: 'session=a', 'x-csrf-token': 'csrf' };
const change = (headers: Record<string, string>) => {
  const body = { field: 'applicationUserRequiresLicense', value: true };
  return gateway.send('PATCH', `/api/v1/panel/update-application-settings?applicationId=${OWNED}`, { headers, body });
};

describe('a call to a service', () => {
  it.each([
    ['the key, with the address of the connection', asKey('a'), `api_key ${KEY_ID} 127.0.0.1`],
    [
      'the session, behind a trusted proxy',
      { ...AS_SESSION, 'x-forwarded-for': '2001:db8::1' },
      `session ${SESSION_ID} 2001:db8::1`,
    ],
    ['no address that a proxy forwards wrongly', { ...asKey('a'), 'x-forwarded-for': 'unknown' }, `api_key ${KEY_ID} 127.0.0.1`],
    [
      'no actor that the client claims',
      { ...asKey('a'), 'x-latchkey-actor': `session ${SESSION_ID} 203.0.113.99` },
      `api_key ${KEY_ID} 127.0.0.1`,
    ],
  ])('that changes something names %s', async (_, headers, actor) => {
    expect((await change(headers)).status).toBe(200);
    expect(actors).toEqual({ authenticate: null, updateApplicationSetting: actor });
  });

  it('names an anonymous address on public routes, and nothing in a read', async () => {
    const body = { email: 'ada@example.com', password: 'a long passphrase' };
    await gateway.send('POST', '/api/v1/auth/sign-in', { body, headers: AS_SESSION });
    await gateway.send('GET', `/api/v1/panel/get-application-settings?applicationId=${OWNED}`, { headers: asKey('a') });
    expect(actors).toEqual({ signIn: 'anonymous - 127.0.0.1', authenticate: null, getApplicationSettings: null });
  });
});

it.each([
  [undefined, 200],
  [{}, 200],
  [null, 400],
  [[], 400],
  [{ a: 1 }, 400],
])('a route without a body gets %j: %i', async (body, status) => {
  const response = await gateway.send('POST', '/api/v1/panel/api-keys/x/revoke', { headers: AS_SESSION, body });
  expect(response.status).toBe(status);
});

it.each([
  ['is that of a change', 'changing', '503 outcome_unknown'],
  ['changed nothing where it only authenticates', 'lost', '503 INTERNAL_ERROR'],
])('a call whose outcome is unknown %s', async (_what, key, outcome) => {
  expect((await change(asKey(key))).outcome).toBe(outcome);
});
