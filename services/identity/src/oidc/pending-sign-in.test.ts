import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { outcomeOf } from '../testing/identity.fixture.ts';
import { comeBack, finishAt, stateOf } from '../testing/oidc-flow.fixture.ts';
import { openTestOidc } from '../testing/oidc-suite.fixture.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';
import { codeAt, guardSomeone } from '../testing/two-factor.fixture.ts';

const { identity, instance, issuer, call } = await openTestOidc();
beforeEach(() => issuer.reset());

/** An account with its second factor on, linked to whoever `claims` says. */
async function guardedAndLinked() {
  const guarded = await guardSomeone({ ...identity, ...instance });
  const sub = randomUUID();
  await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [issuer.url, sub, guarded.accountId]);
  issuer.claims = { sub, picture: 'https://images.test/guarded.png' };
  const { outcome } = await finishAt(instance, issuer);
  if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
  return { ...guarded, pending: outcome.value.pending };
}

test('an account with a second factor wants a code of it, and nothing changes before', async () => {
  const { pending, code, accountId } = await guardedAndLinked();
  const before = await stateOf(identity);
  expect((await instance.accounts.getAccount({ accountId })).account?.avatarUrl).toBeUndefined();
  for (const wrong of ['', 'nonsense']) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: wrong }))).toBe('two_factor_code_invalid');
  }
  expect(await stateOf(identity)).toEqual(before);
  const right = code();
  const { signedIn } = await instance.oidc.completeOidc({ pending, code: right });
  expect(signedIn?.account).toMatchObject({
    id: accountId,
    twoFactorEnabled: true,
    avatarUrl: 'https://images.test/guarded.png',
  });
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: right }))).toBe('two_factor_code_invalid');
});

test('a pending sign-in takes a recovery code once, and ends the session that the client had', async () => {
  const { pending, recoveryCodes } = await guardedAndLinked();
  const { session } = await signUpSomeone(instance);
  const request = { pending, code: present(recoveryCodes[0]), previousSessionToken: session.token };
  expect(await outcomeOf(instance.oidc.completeOidc(request))).toBe('done');
  const old = instance.authentication.authenticate({ credential: sessionCredential(session.token) });
  expect(await outcomeOf(old)).toBe('session_invalid');
  expect(await outcomeOf(instance.oidc.completeOidc(request))).toBe('two_factor_code_invalid');
});

test('a pending sign-in is good for one session, also of two at once, and uses no other code up', async () => {
  const { signIn, pending, recoveryCodes } = await guardedAndLinked();
  const [one = '', other = '', third = ''] = recoveryCodes;
  const complete = (code: string) => outcomeOf(instance.oidc.completeOidc({ pending, code }));
  const outcomes = await Promise.all([complete(one), complete(other)]);
  expect([...outcomes].sort()).toEqual(['done', 'oidc_flow_invalid']);
  expect(await complete(third)).toBe('oidc_flow_invalid');
  const unused = outcomes[0] === 'done' ? other : one;
  for (const code of [unused, third]) expect(await outcomeOf(signIn(code))).toBe('done');
});

test('a pending sign-in counts wrong codes as any sign-in does', async () => {
  const { pending, wrongCode, code } = await guardedAndLinked();
  const outcomes = [];
  for (let i = 0; i < 6; i += 1) outcomes.push(await outcomeOf(instance.oidc.completeOidc({ pending, code: wrongCode() })));
  expect(outcomes).toEqual([...Array(5).fill('two_factor_code_invalid'), 'two_factor_attempts_reached']);
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('two_factor_attempts_reached');
});

test('a pending sign-in is over after 10 minutes', async () => {
  const { pending, code } = await guardedAndLinked();
  identity.clock.advance(10 * MINUTE_MS);
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('oidc_flow_invalid');
});

test.each<[string, (guarded: Awaited<ReturnType<typeof guardedAndLinked>>) => Promise<unknown>]>([
  ['the sessions of its account were ended', ({ accountId }) => instance.accounts.signOutEverywhere({ accountId })],
  [
    'the password was reset',
    ({ accountId }) => call(['reset-password', accountId, '--keep-links'], { input: 'another password' }),
  ],
  ['the second factor was taken off by an operator', ({ accountId }) => call(['two-factor-off', accountId])],
  [
    'the second factor was switched off and another on',
    async ({ accountId, recoveryCodes }) => {
      const [code = ''] = recoveryCodes;
      await instance.twoFactor.disableTwoFactor({ accountId, password: PASSWORD, code });
      const { secret } = await instance.twoFactor.setUpTwoFactor({ accountId });
      await instance.twoFactor.enableTwoFactor({ accountId, code: codeAt(secret, identity.clock.now()) });
    },
  ],
])('a pending sign-in is over once %s', async (_what, change) => {
  const guarded = await guardedAndLinked();
  await change(guarded);
  for (const code of [present(guarded.recoveryCodes[1]), guarded.code(), '']) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending: guarded.pending, code }))).toBe('oidc_flow_invalid');
  }
});

test.each([
  ['is shown', 'p'.repeat(2_000), true],
  ['is left out where it is too long once it is sealed', '\\'.repeat(2_000), false],
])('the picture of a sign-in that waits for a code %s', async (_what, query, shown) => {
  const { accountId, code } = await guardedAndLinked();
  const picture = `https://images.test/?${query}`;
  issuer.claims = { ...issuer.claims, picture };
  const { outcome } = await finishAt(instance, issuer);
  if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
  const { pending } = outcome.value;
  expect(`oidc_pending=${pending}`.length).toBeLessThan(3_900);
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('done');
  const { account } = await instance.accounts.getAccount({ accountId });
  expect(account?.avatarUrl).toBe(shown ? picture : undefined);
});

test('what is no pending sign-in is refused: nothing, a flow, one that was changed', async () => {
  const { pending, code } = await guardedAndLinked();
  const { flow } = await comeBack(instance, issuer);
  const changed = `${pending.slice(0, -8)}AAAAAAAA`;
  for (const other of ['', 'nonsense', flow ?? '', changed, `${pending}AAAA`, 'A'.repeat(5_000)]) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending: other, code: code() })), other).toBe('oidc_flow_invalid');
  }
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('done');
});
