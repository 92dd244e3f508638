import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { CallOptions } from '@connectrpc/connect';
import { AuthenticateResponseSchema, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Clients } from '../clients.ts';
import { Authenticator, type GivenCredential } from './authenticator.ts';

const KEY: GivenCredential = { kind: 'key', text: 'lk_mgmt_a' };
const IP = '203.0.113.7';

type Answer = MessageInitShape<typeof AuthenticateResponseSchema>;

const principal = {
  kind: PrincipalKind.API_KEY,
  accountId: 'account',
  username: 'ada',
  credentialId: 'credential',
  scopes: ['files:read'],
};
const answer: Answer = { principal, epochKey: 'epoch-key', epoch: 'epoch' };

let nowMs = 1_000;

/** Lets time pass. The cache holds on to the very `performance` object, so that its method is what must be replaced. */
function pass(ms: number): void {
  nowMs += ms;
  vi.setSystemTime(Date.now() + ms);
}

/** An authenticator before an identity service that takes `latencyMs` for an answer. */
function createAuthenticator(given: Answer = answer, latencyMs = 0) {
  let questions = 0;
  const authenticate = async () => {
    questions += 1;
    pass(latencyMs);
    return create(AuthenticateResponseSchema, given);
  };
  const authenticator = new Authenticator({ authentication: { authenticate } } as unknown as Pick<Clients, 'authentication'>);
  return { authenticator, questions: () => questions };
}

it('may ask identity again where the first question gets no answer', async () => {
  const asked: CallOptions[] = [];
  const authenticate = async (_request: unknown, options: CallOptions) => {
    asked.push(options);
    return create(AuthenticateResponseSchema, answer);
  };
  const authenticator = new Authenticator({ authentication: { authenticate } } as unknown as Pick<Clients, 'authentication'>);
  await authenticator.authenticate(KEY, IP, { timeoutMs: 4_500 });
  expect(asked.map(({ timeoutMs }) => timeoutMs)).toEqual([4_500]);
});

describe('a remembered principal', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('is recalled with the epoch that it was read under', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    expect(authenticator.recall(KEY, IP)).toMatchObject({
      epochKey: 'epoch-key',
      epoch: 'epoch',
      principal: { accountId: 'account', username: 'ada', credentialId: 'credential', expiresAtMs: Number.POSITIVE_INFINITY },
    });
  });

  it('is forgotten after three seconds', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    pass(2_999);
    expect(authenticator.recall(KEY, IP)).toBeDefined();
    pass(2);
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it('is as old as the question, not as the answer, so that a slow answer shortens its life', async () => {
    const { authenticator } = createAuthenticator(answer, 2_500);
    await authenticator.authenticate(KEY, IP, {});
    pass(400);
    expect(authenticator.recall(KEY, IP)).toBeDefined();
    pass(200);
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it('does not grow younger by being recalled', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    for (let i = 0; i < 6; i += 1) {
      authenticator.recall(KEY, IP);
      pass(510);
    }
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it('is a miss from another address, whose use identity must hear of', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    expect(authenticator.recall(KEY, '203.0.113.8')).toBeUndefined();
  });

  it('is a miss for another text, and for the same text of another kind', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    expect(authenticator.recall({ ...KEY, text: 'lk_mgmt_b' }, IP)).toBeUndefined();
    expect(authenticator.recall({ ...KEY, kind: 'session' }, IP)).toBeUndefined();
  });

  it('is a miss from the moment its credential ends', async () => {
    const expiresAt = timestampFromMs(Date.now() + 1_000);
    const { authenticator } = createAuthenticator({ ...answer, principal: { ...principal, expiresAt } });
    await authenticator.authenticate(KEY, IP, {});
    pass(999);
    expect(authenticator.recall(KEY, IP)).toBeDefined();
    pass(1);
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it.each([
    { epochKey: '', epoch: '' },
    { epochKey: 'key', epoch: '' },
    { epochKey: '', epoch: 'epoch' },
  ])('is not remembered without an epoch: %j', async (epoch) => {
    const { authenticator } = createAuthenticator({ ...answer, ...epoch });
    await authenticator.authenticate(KEY, IP, {});
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it('is forgotten with all others when Redis was away', async () => {
    const { authenticator } = createAuthenticator();
    await authenticator.authenticate(KEY, IP, {});
    authenticator.forgetAll();
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });

  it('is not made of an answer without a principal', async () => {
    const { authenticator } = createAuthenticator({ epochKey: 'key', epoch: 'epoch' });
    await expect(authenticator.authenticate(KEY, IP, {})).rejects.toThrow('no principal');
    expect(authenticator.recall(KEY, IP)).toBeUndefined();
  });
});
