import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AuthenticateResponseSchema, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Clients } from '../clients.ts';
import { createAuthenticator } from './authenticator.ts';
import type { GivenCredential } from './credential.ts';

const KEY: GivenCredential = { kind: 'key', text: 'lk_mgmt_a' };
const IP = '203.0.113.7';

type Response = MessageInitShape<typeof AuthenticateResponseSchema>;

const principal = { kind: PrincipalKind.API_KEY, accountId: 'account', credentialId: 'credential', scopes: ['files:read'] };
const RESPONSE: Response = { principal, epochKey: 'epoch-key', epoch: 'epoch' };

let nowMs = 1_000;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  // The cache uses this very object.
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function pass(ms: number): void {
  nowMs += ms;
  vi.setSystemTime(Date.now() + ms);
}

/** An authenticator that has authenticated the key with an identity of that latency. */
async function authenticated(response: Response = RESPONSE, latencyMs = 0) {
  const authenticate = async () => {
    pass(latencyMs);
    return create(AuthenticateResponseSchema, response);
  };
  const authenticator = createAuthenticator({ authentication: { authenticate } } as unknown as Pick<Clients, 'authentication'>);
  await authenticator.authenticate(KEY, IP, '');
  return { authenticator, recalls: () => authenticator.recall(KEY, IP) !== undefined };
}

it('recalls a principal with its epoch, for its credential and address', async () => {
  const { authenticator } = await authenticated();
  expect(authenticator.recall(KEY, IP)).toMatchObject({
    epochKey: 'epoch-key',
    epoch: 'epoch',
    principal: { accountId: 'account', credentialId: 'credential', expiresAtMs: Number.POSITIVE_INFINITY },
  });
  expect(authenticator.recall(KEY, '203.0.113.8')).toBeUndefined();
  expect(authenticator.recall({ ...KEY, text: 'lk_mgmt_b' }, IP)).toBeUndefined();
  expect(authenticator.recall({ ...KEY, kind: 'session' }, IP)).toBeUndefined();
});

it.each([
  ['the time of a quick response', 0, 2_999],
  ['the time before a slow call', 2_500, 499],
])('recalls a principal for three seconds from %s, however often', async (_, latencyMs, leftMs) => {
  const { recalls } = await authenticated(RESPONSE, latencyMs);
  pass(leftMs);
  expect(recalls()).toBe(true);
  pass(2);
  expect(recalls()).toBe(false);
});

it('recalls no principal whose credential has expired', async () => {
  const expiresAt = timestampFromMs(Date.now() + 1_000);
  const { recalls } = await authenticated({ ...RESPONSE, principal: { ...principal, expiresAt } });
  pass(999);
  expect(recalls()).toBe(true);
  pass(1);
  expect(recalls()).toBe(false);
});

it.each([{ epochKey: '' }, { epoch: '' }])('caches no response without an epoch: %j', async (missing) => {
  expect((await authenticated({ ...RESPONSE, ...missing })).recalls()).toBe(false);
});

it('rejects a response without a principal', async () => {
  await expect(authenticated({ epochKey: 'key', epoch: 'epoch' })).rejects.toThrow('no principal');
});

it('recalls nothing after forgetAll', async () => {
  const { authenticator, recalls } = await authenticated();
  authenticator.forgetAll();
  expect(recalls()).toBe(false);
});
