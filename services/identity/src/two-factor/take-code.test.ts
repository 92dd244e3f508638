import { fromConnectError } from '@latchkey/kit/errors/errors';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf, SECOND_MS } from '../testing/identity.ts';
import { signUpSomeone } from '../testing/sample.ts';
import { codeAt, type Guarded, guardSomeone } from '../testing/two-factor.ts';

const identity = await openTestIdentity();

const verify = ({ accountId }: Guarded, code = '') => outcomeOf(identity.twoFactor.verifyTwoFactorCode({ accountId, code }));
const WRONG = 'two_factor_code_invalid';
const REACHED = 'two_factor_attempts_reached';
const NO_CODE_OF_THEIRS = 'aaaa-aaaa-aaaa-aaaa';

async function failTimes(guarded: Guarded, times: number, code = guarded.wrongCode()): Promise<string[]> {
  const outcomes: string[] = [];
  for (let i = 0; i < times; i += 1) outcomes.push(await verify(guarded, code));
  return outcomes;
}

test('sign-in checks the code after the password', async () => {
  const { signIn, code, wrongCode } = await guardSomeone(identity);
  for (const given of [undefined, code(), wrongCode(), '']) {
    expect(await outcomeOf(signIn(given, 'wrong password'))).toBe('sign_in_failed');
  }
  const required = { reason: 'two_factor_required', kind: 'unauthenticated', code: 'two_factor_required' };
  expect(await refusalOf(signIn())).toMatchObject(required);
  for (const given of [wrongCode(), '', '12345']) {
    expect(await refusalOf(signIn(given))).toMatchObject({ reason: WRONG, kind: 'invalid', code: 'bad_request' });
  }
  expect(await outcomeOf(signIn(code()))).toBe('done');
});

test('a code is accepted once by concurrent requests, and its copies do not count', async () => {
  const guarded = await guardSomeone(identity);
  const code = guarded.code();
  const requests = Array.from({ length: 12 }, (_, i) => (i % 2 ? outcomeOf(guarded.signIn(code)) : verify(guarded, code)));
  expect((await Promise.all(requests)).sort()).toEqual(['done', ...Array(11).fill(WRONG)]);
  expect(await failTimes(guarded, 4)).toEqual(Array(4).fill(WRONG));
  expect(await verify(guarded, guarded.code(1))).toBe('done');
  // The code of an earlier step is a failure.
  expect(await verify(guarded, guarded.code())).toBe(WRONG);
  expect(await verify(guarded, guarded.wrongCode())).toBe(REACHED);
});

test('a recovery code is accepted once by concurrent requests, and its copies do not count', async () => {
  const guarded = await guardSomeone(identity);
  const [code = '', other = ''] = guarded.recoveryCodes;
  const outcomes = await Promise.all(Array.from({ length: 12 }, () => outcomeOf(guarded.signIn(code))));
  expect(outcomes.sort()).toEqual(['done', ...Array(11).fill(WRONG)]);
  expect(await verify(guarded, other.toUpperCase())).toBe('done');
  expect(await verify(guarded, code)).toBe(WRONG);
  expect(await failTimes(guarded, 6, NO_CODE_OF_THEIRS)).toEqual([...Array(5).fill(WRONG), REACHED]);
});

test('of 50 concurrent wrong codes at two instances 5 are checked', async () => {
  const guarded = await guardSomeone(identity);
  const elsewhere = identity.connect();
  const attempts = Array.from({ length: 50 }, (_, i) => {
    const { twoFactor } = i % 2 ? identity : elsewhere;
    return outcomeOf(twoFactor.verifyTwoFactorCode({ accountId: guarded.accountId, code: guarded.wrongCode() }));
  });
  const outcomes = await Promise.all(attempts);
  expect(outcomes.filter((outcome) => outcome === WRONG)).toHaveLength(5);
  expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(45);
  expect(await outcomeOf(guarded.signIn(guarded.code()))).toBe(REACHED);
});

test('the limit ends 15 minutes after the failures, as its error says', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 1);
  identity.clock.advance(5 * MINUTE_MS);
  await failTimes(guarded, 4);
  identity.clock.advance(SECOND_MS / 2);
  const request = { accountId: guarded.accountId, code: guarded.code() };
  const err = await identity.twoFactor.verifyTwoFactorCode(request).catch(fromConnectError);
  const limit = { policy: 'two-factor-failures', limit: '5', windowSeconds: '900', remaining: '0', retryAfterSeconds: '600' };
  expect(err).toMatchObject({ reason: REACHED, kind: 'rate_limited', code: 'rate_limit_reached', metadata: limit });
  identity.clock.advance(10 * MINUTE_MS - SECOND_MS / 2 - 1);
  expect(await verify(guarded, guarded.code())).toBe(REACHED);
  identity.clock.advance(1);
  // The first failure no longer counts.
  expect(await failTimes(guarded, 2)).toEqual([WRONG, REACHED]);
  identity.clock.advance(5 * MINUTE_MS);
  expect(await verify(guarded, guarded.code())).toBe('done');
});

test('successes, malformed codes and missing codes do not count', async () => {
  const guarded = await guardSomeone(identity);
  for (const recoveryCode of guarded.recoveryCodes.slice(0, 6)) expect(await verify(guarded, recoveryCode)).toBe('done');
  for (let i = 0; i < 6; i += 1) expect(await outcomeOf(guarded.signIn())).toBe('two_factor_required');
  for (const text of ['', 'x', '12345', '1234567', '12345a', 'abcd']) expect(await verify(guarded, text)).toBe(WRONG);
  expect(await failTimes(guarded, 6)).toEqual([...Array(5).fill(WRONG), REACHED]);
});

test('over the limit a recovery code is accepted, so that an intruder cannot lock the owner out', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 5);
  expect(await verify(guarded, NO_CODE_OF_THEIRS)).toBe(REACHED);
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe('done');
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe(REACHED);
});

test('failures at enabling count, also for another secret', async () => {
  const accountId = (await signUpSomeone(identity)).account.id;
  const enable = (code: string) => outcomeOf(identity.twoFactor.enableTwoFactor({ accountId, code }));
  const first = await identity.twoFactor.setUpTwoFactor({ accountId });
  for (let i = 0; i < 5; i += 1) expect(await enable(codeAt(first.secret, new Date(0)))).toBe(WRONG);
  const second = await identity.twoFactor.setUpTwoFactor({ accountId });
  expect(await enable(codeAt(second.secret, identity.clock.now()))).toBe(REACHED);
});
