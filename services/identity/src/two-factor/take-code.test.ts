import { fromConnectError } from '@latchkey/kit/errors';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf, refusalOf, SECOND_MS } from '../testing/identity.fixture.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.fixture.ts';
import { codeAt, type Guarded, guardSomeone } from '../testing/two-factor.fixture.ts';

const identity = await openTestIdentity();

const verify = ({ accountId }: Guarded, code = '') => outcomeOf(identity.twoFactor.verifyTwoFactorCode({ accountId, code }));
const WRONG = 'two_factor_code_invalid';
const REACHED = 'two_factor_attempts_reached';

async function failTimes(guarded: Guarded, times: number): Promise<string[]> {
  const outcomes: string[] = [];
  for (let i = 0; i < times; i += 1) outcomes.push(await verify(guarded, guarded.wrongCode()));
  return outcomes;
}

test('sign-in looks at the second factor only after the password', async () => {
  const { signIn, code, wrongCode } = await guardSomeone(identity);
  const wrongPassword = await refusalOf(signIn(undefined, 'wrong password'));
  expect(wrongPassword).toMatchObject({ reason: 'sign_in_failed', kind: 'unauthenticated', code: 'unauth' });
  for (const given of [code(), wrongCode(), '', 'x'])
    expect(await refusalOf(signIn(given, 'wrong password'))).toEqual(wrongPassword);
  expect(await refusalOf(signIn())).toMatchObject({
    reason: 'two_factor_required',
    kind: 'unauthenticated',
    code: 'two_factor_required',
  });
  for (const given of [wrongCode(), '', 'x', '12345']) {
    expect(await refusalOf(signIn(given))).toMatchObject({ reason: WRONG, kind: 'invalid', code: 'bad_request' });
  }
  expect(await outcomeOf(signIn(code()))).toBe('done');
});

test('a code is used up by whoever comes first, wherever it is taken', async () => {
  const guarded = await guardSomeone(identity);
  const { signIn, code, accountId } = guarded;
  const given = code();
  const outcomes = await Promise.all([
    outcomeOf(signIn(given)),
    outcomeOf(signIn(given)),
    verify(guarded, given),
    outcomeOf(identity.twoFactor.disableTwoFactor({ accountId, password: 'wrong password', code: given })),
  ]);
  expect(outcomes.slice(0, 3).sort()).toEqual(['done', WRONG, WRONG]);
  expect(outcomes[3]).toBe('two_factor_password_wrong');
  expect(await verify(guarded, code(-1))).toBe(WRONG);
  expect(await verify(guarded, code(1))).toBe('done');
  expect(await outcomeOf(signIn(code(1)))).toBe(WRONG);
});

test('of 50 wrong codes at once exactly 5 are judged, and then not even a right one', async () => {
  const guarded = await guardSomeone(identity);
  const elsewhere = await identity.connect();
  const attempts = Array.from({ length: 50 }, (_, i) => {
    const { twoFactor } = i % 2 ? identity : elsewhere;
    return outcomeOf(twoFactor.verifyTwoFactorCode({ accountId: guarded.accountId, code: guarded.wrongCode() }));
  });
  const outcomes = await Promise.all(attempts);
  expect(outcomes.filter((outcome) => outcome === WRONG)).toHaveLength(5);
  expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(45);
  expect(await verify(guarded, guarded.code())).toBe(REACHED);
  expect(await outcomeOf(guarded.signIn(guarded.code()))).toBe(REACHED);
});

test('the refusal says when to try again, and then a code is judged again', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 1);
  identity.clock.advance(5 * MINUTE_MS);
  await failTimes(guarded, 4);
  identity.clock.advance(SECOND_MS / 2);
  const err = await identity.twoFactor
    .verifyTwoFactorCode({ accountId: guarded.accountId, code: guarded.code() })
    .catch(fromConnectError);
  expect(err).toMatchObject({
    reason: REACHED,
    kind: 'rate_limited',
    code: 'rate_limit_reached',
    metadata: {
      policy: 'two-factor-failures',
      limit: '5',
      windowSeconds: '900',
      remaining: '0',
      retryAfterSeconds: '600',
    },
  });
  identity.clock.advance(10 * MINUTE_MS - SECOND_MS / 2 - 1);
  expect(await verify(guarded, guarded.code())).toBe(REACHED);
  identity.clock.advance(1);
  // The first failure counts no more, the four others do.
  expect(await failTimes(guarded, 2)).toEqual([WRONG, REACHED]);
  identity.clock.advance(5 * MINUTE_MS);
  expect(await verify(guarded, guarded.code())).toBe('done');
});

test('only failures count: neither successes, nor what can be no code, nor a code that was not given', async () => {
  const guarded = await guardSomeone(identity);
  for (const recoveryCode of guarded.recoveryCodes.slice(0, 6)) expect(await verify(guarded, recoveryCode)).toBe('done');
  for (let i = 0; i < 6; i += 1) expect(await outcomeOf(guarded.signIn())).toBe('two_factor_required');
  for (const text of ['', 'x', '12345', '1234567', '12345a', 'abcd']) expect(await verify(guarded, text)).toBe(WRONG);
  expect(await failTimes(guarded, 6)).toEqual([...Array(5).fill(WRONG), REACHED]);
});

test('a recovery code that is sent several times at once, and again later, is taken once, and its copies count for nothing', async () => {
  const guarded = await guardSomeone(identity);
  const [code = '', other = ''] = guarded.recoveryCodes;
  const outcomes = await Promise.all(Array.from({ length: 12 }, () => outcomeOf(guarded.signIn(code))));
  expect(outcomes.sort()).toEqual(['done', ...Array(11).fill(WRONG)]);
  expect(await verify(guarded, other)).toBe('done');
  expect(await verify(guarded, code)).toBe(WRONG);
  // One that is none of theirs is a failure.
  const guesses = [];
  for (let i = 0; i < 6; i += 1) guesses.push(await verify(guarded, 'aaaa-aaaa-aaaa-aaaa'));
  expect(guesses).toEqual([...Array(5).fill(WRONG), REACHED]);
});

test('who knows the password can’t shut the owner out: a recovery code is taken all the same, and guessing one is no use', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 5);
  const guess = 'aaaa-aaaa-aaaa-aaaa';
  expect(await verify(guarded, guess)).toBe(REACHED);
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe('done');
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe(REACHED);
});

test('failures at enabling it count, and go on counting when another secret is made', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  const enable = (code: string) => outcomeOf(identity.twoFactor.enableTwoFactor({ accountId, code }));
  const first = await identity.twoFactor.setUpTwoFactor({ accountId });
  for (let i = 0; i < 5; i += 1) expect(await enable(codeAt(first.secret, new Date(0)))).toBe(WRONG);
  const second = await identity.twoFactor.setUpTwoFactor({ accountId });
  expect(await enable(codeAt(second.secret, identity.clock.now()))).toBe(REACHED);
  identity.clock.advance(15 * MINUTE_MS);
  expect(await enable(codeAt(second.secret, identity.clock.now()))).toBe('done');
});

test('a second factor that is set up and not enabled asks nobody for a code', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  await identity.twoFactor.setUpTwoFactor({ accountId });
  expect((await identity.twoFactor.verifyTwoFactorCode({ accountId, code: '123456' })).twoFactorEnabled).toBe(false);
  for (const code of [undefined, '123456']) {
    const shown = { email: account.email, password: PASSWORD, ...(code !== undefined && { code }) };
    expect(await outcomeOf(identity.accounts.signIn(shown))).toBe('done');
  }
});
