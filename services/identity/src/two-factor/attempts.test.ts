import { fromConnectError } from '@latchkey/kit/errors';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPasswords, type Passwords } from '../account/password.ts';
import { migrateIdentity, outcomeOf, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.fixture.ts';
import { MINUTE_MS, SECOND_MS } from '../testing/test-clock.ts';
import { codeAt, type Guarded, guardSomeone } from '../testing/two-factor.fixture.ts';

let database: TestDatabase;
let identity: TestIdentity;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

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

test('no session is opened before the code was right', async () => {
  const { accountId, signIn, code, wrongCode } = await guardSomeone(identity);
  const sessions = async () => {
    const { rows } = await identity.db.query('select count(*)::int as count from session where account_id = $1', [accountId]);
    return rows[0].count as number;
  };
  const before = await sessions();
  for (const given of [undefined, wrongCode(), 'x']) await outcomeOf(signIn(given));
  expect(await sessions()).toBe(before);
  await signIn(code());
  expect(await sessions()).toBe(before + 1);
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

test('a recovery code is good once in place of a code, in any case, with or without dashes', async () => {
  const guarded = await guardSomeone(identity);
  const [first = '', second = '', third = ''] = guarded.recoveryCodes;
  expect(await outcomeOf(guarded.signIn(first))).toBe('done');
  expect(await outcomeOf(guarded.signIn(first))).toBe(WRONG);
  expect(await outcomeOf(guarded.signIn(second.toUpperCase().replaceAll('-', '')))).toBe('done');
  expect(await verify(guarded, second)).toBe(WRONG);
  const atOnce = await Promise.all([outcomeOf(guarded.signIn(third)), outcomeOf(guarded.signIn(third)), verify(guarded, third)]);
  expect(atOnce.sort()).toEqual(['done', WRONG, WRONG]);
});

test('a recovery code of another account, and one of before, is wrong', async () => {
  const [mine, other] = [await guardSomeone(identity), await guardSomeone(identity)];
  expect(await verify(mine, other.recoveryCodes[0])).toBe(WRONG);
  expect(await verify(other, other.recoveryCodes[0])).toBe('done');
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

test('a right code that is sent several times at once is taken once, and its copies count for nothing', async () => {
  const guarded = await guardSomeone(identity);
  const code = guarded.code();
  const outcomes = await Promise.all(Array.from({ length: 12 }, () => outcomeOf(guarded.signIn(code))));
  expect(outcomes.sort()).toEqual(['done', ...Array(11).fill(WRONG)]);
  expect(await failTimes(guarded, 4)).toEqual(Array(4).fill(WRONG));
  // That of the step before is a failure.
  expect(await verify(guarded, guarded.code(-1))).toBe(WRONG);
  expect(await verify(guarded, guarded.code(1))).toBe(REACHED);
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

test('a success in between does not make room for more failures', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 4);
  expect(await verify(guarded, guarded.code())).toBe('done');
  expect(await failTimes(guarded, 2)).toEqual([WRONG, REACHED]);
});

test('who knows no password uses up nobody’s attempts', async () => {
  const guarded = await guardSomeone(identity);
  for (let i = 0; i < 6; i += 1) await outcomeOf(guarded.signIn(guarded.wrongCode(), 'wrong password'));
  expect(await outcomeOf(guarded.signIn(guarded.code()))).toBe('done');
});

test('who knows the password can’t shut the owner out: a recovery code is taken all the same, and guessing one is no use', async () => {
  const guarded = await guardSomeone(identity);
  await failTimes(guarded, 5);
  const guess = 'aaaa-aaaa-aaaa-aaaa';
  expect(await verify(guarded, guess)).toBe(REACHED);
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe('done');
  expect(await outcomeOf(guarded.signIn(guarded.recoveryCodes[0]))).toBe(REACHED);
});

test('wrong passwords given to disable it count as wrong codes do, also at once', async () => {
  const guarded = await guardSomeone(identity);
  const { accountId } = guarded;
  const disable = (password: string) =>
    outcomeOf(identity.twoFactor.disableTwoFactor({ accountId, password, code: guarded.code() }));
  const outcomes = await Promise.all(Array.from({ length: 12 }, (_, i) => disable(`wrong password ${i}`)));
  expect(outcomes.filter((outcome) => outcome === 'two_factor_password_wrong')).toHaveLength(5);
  expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(7);
  expect(await disable(PASSWORD)).toBe(REACHED);
});

test('past the limit no password is looked at to disable it, but for who has a recovery code', async () => {
  const real = createPasswords({ atOnce: 2, waitingMax: 10 });
  let verified = 0;
  const verifyPassword: Passwords['verify'] = (stored, password) => {
    verified += 1;
    return real.verify(stored, password);
  };
  const { twoFactor } = await identity.connect({ passwords: { ...real, verify: verifyPassword } });
  const guarded = await guardSomeone(identity);
  const { accountId, recoveryCodes } = guarded;
  const disable = (password: string, code = '') => outcomeOf(twoFactor.disableTwoFactor({ accountId, password, code }));
  await failTimes(guarded, 5);
  const codes = [guarded.code(), guarded.wrongCode(), 'aaaa-aaaa-aaaa-aaaa', 'x', ''];
  const outcomes = await Promise.all(codes.flatMap((code) => [disable(PASSWORD, code), disable('wrong password', code)]));
  expect(outcomes).toEqual(Array(10).fill(REACHED));
  expect(verified).toBe(0);
  expect(await disable('wrong password', recoveryCodes[0])).toBe('two_factor_password_wrong');
  expect(await disable(PASSWORD, recoveryCodes[0])).toBe('done');
  expect(verified).toBe(2);
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

test('an account without a second factor takes any code and none', async () => {
  const guarded = await guardSomeone(identity);
  await identity.db.query('delete from two_factor where account_id = $1', [guarded.accountId]);
  for (const code of ['', 'x', '123456']) {
    expect((await identity.twoFactor.verifyTwoFactorCode({ accountId: guarded.accountId, code })).twoFactorEnabled).toBe(false);
  }
  expect(await outcomeOf(guarded.signIn('x'))).toBe('done');
});
