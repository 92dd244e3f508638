import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPasswords, type Passwords } from '../account/password.ts';
import {
  migrateIdentity,
  outcomeOf,
  startTestIdentity,
  type TestIdentity,
  type TestInstance,
} from '../testing/identity.fixture.ts';
import { REDIRECT_URI, startTestIssuer, type TestIssuer } from '../testing/issuer.fixture.ts';
import { PASSWORD, present, signUpSomeone } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';
import { type Guarded, guardSomeone } from '../testing/two-factor.fixture.ts';

/** Whoever has found a session must have no more guesses at the password with it than at sign-in (decisions 9). */
let database: TestDatabase;
let identity: TestIdentity;
let instance: TestInstance;
let issuer: TestIssuer;
let verified = 0;

beforeAll(async () => {
  issuer = await startTestIssuer();
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
  const real = createPasswords({ atOnce: 2, waitingMax: 100 });
  const verify: Passwords['verify'] = (stored, password) => {
    verified += 1;
    return real.verify(stored, password);
  };
  instance = await identity.connect({ env: issuer.env(), passwords: { ...real, verify } });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
  await issuer.stop();
});

const REACHED = 'password_attempts_reached';
const WRONG = /password_wrong$/;

interface Asked {
  readonly accountId: string;
  readonly password: string;
  readonly code?: string;
}

/** All that somebody with a session shows a password for. */
const link = ({ accountId, ...proof }: Asked) =>
  outcomeOf(instance.oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: accountId, ...proof }));
const unlink = (asked: Asked) => outcomeOf(instance.oidc.unlinkOidc({ issuer: 'test', ...asked }));
const disable = (asked: Asked) => outcomeOf(instance.twoFactor.disableTwoFactor(asked));
const WAYS = [
  ['to link', link],
  ['to unlink', unlink],
  ['to disable the second factor', disable],
] as const;

/** An account with a link and a second factor, whose every attempt at codes is spent: only its recovery codes are taken any more. */
async function spent(): Promise<Guarded & { readonly recoveryCode: string }> {
  const guarded = await guardSomeone({ ...identity, ...instance });
  const { accountId } = guarded;
  await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [issuer.url, accountId, accountId]);
  const fail = () => outcomeOf(instance.twoFactor.verifyTwoFactorCode({ accountId, code: guarded.wrongCode() }));
  for (let i = 0; i < 5; i += 1) expect(await fail()).toBe('two_factor_code_invalid');
  expect(await fail()).toBe('two_factor_attempts_reached');
  return { ...guarded, recoveryCode: present(guarded.recoveryCodes[0]) };
}

describe.each(WAYS)('passwords shown %s', (_what, show) => {
  test('are guessed 10 times in 15 minutes and no more, also by who has a recovery code, which is kept', async () => {
    const { accountId, recoveryCode: code } = await spent();
    const outcomes = [];
    for (let i = 0; i < 15; i += 1) outcomes.push(await show({ accountId, password: `guess ${i}`, code }));
    expect(outcomes).toEqual([...Array(10).fill(expect.stringMatching(WRONG)), ...Array(5).fill(REACHED)]);
    const before = verified;
    expect(await show({ accountId, password: PASSWORD, code })).toBe(REACHED);
    expect(verified).toBe(before);
    identity.clock.advance(15 * MINUTE_MS);
    expect(await show({ accountId, password: PASSWORD, code })).toBe('done');
  });

  test('are guessed no more often at once', async () => {
    const { accountId, recoveryCode: code } = await spent();
    const guesses = Array.from({ length: 30 }, (_, i) => show({ accountId, password: `guess ${i}`, code }));
    const right = show({ accountId, password: PASSWORD, code: 'x' });
    const outcomes = await Promise.all(guesses);
    expect(outcomes.filter((outcome) => WRONG.test(outcome))).toHaveLength(10);
    expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(20);
    expect(await right).toBe('two_factor_attempts_reached');
  });
});

test('they are one account’s guesses, whatever they are shown for', async () => {
  const [{ accountId, recoveryCode: code }, other] = [await spent(), await spent()];
  const outcomes = [];
  for (let i = 0; i < 11; i += 1) {
    const [, show] = present(WAYS[i % WAYS.length]);
    outcomes.push(await show({ accountId, password: 'a guess', code }));
  }
  expect(outcomes).toEqual([...Array(10).fill(expect.stringMatching(WRONG)), REACHED]);
  expect(await unlink({ accountId: other.accountId, password: PASSWORD, code: other.recoveryCode })).toBe('done');
});

test('without a second factor too, and sign-in goes on for the owner', async () => {
  const { account } = await signUpSomeone(instance);
  const outcomes = [];
  for (let i = 0; i < 12; i += 1) outcomes.push(await link({ accountId: account.id, password: 'a guess' }));
  expect(outcomes).toEqual([...Array(10).fill('oidc_password_wrong'), REACHED, REACHED]);
  expect(await outcomeOf(instance.accounts.signIn({ email: account.email, password: PASSWORD }))).toBe('done');
});

test('the right password is no guess', async () => {
  const { account } = await signUpSomeone(instance);
  for (let i = 0; i < 12; i += 1) expect(await link({ accountId: account.id, password: PASSWORD })).toBe('done');
});
