import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { comeBack, finishAt, openTestOidc, stateOf } from '../testing/oidc-flow.ts';
import { runCommand } from '../testing/operator.ts';
import { present } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const { identity, instance, issuer } = await openTestOidc();

/** An account with its second factor on, linked to the person of `claims`. */
async function guardedAndLinked() {
  const guarded = await guardSomeone(identity);
  const sub = randomUUID();
  await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [issuer.url, sub, guarded.accountId]);
  issuer.claims = { sub, picture: 'https://images.test/guarded.png' };
  const { outcome } = await finishAt(instance, issuer);
  if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
  return { ...guarded, pending: outcome.value.pending };
}

test('a second factor needs a code, and nothing changes before', async () => {
  const { pending, code, accountId } = await guardedAndLinked();
  const before = await stateOf(identity);
  expect((await instance.accounts.getAccount({ accountId })).account?.pictureUrl).toBeUndefined();
  for (const wrong of ['', 'nonsense']) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: wrong }))).toBe('two_factor_code_invalid');
  }
  expect(await stateOf(identity)).toEqual(before);
  const right = code();
  const { signedIn } = await instance.oidc.completeOidc({ pending, code: right });
  expect(signedIn?.account).toMatchObject({ id: accountId, pictureUrl: 'https://images.test/guarded.png' });
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: right }))).toBe('two_factor_code_invalid');
});

test('a pending sign-in opens one session, also in concurrent requests, and uses up one code', async () => {
  const { signIn, pending, recoveryCodes } = await guardedAndLinked();
  const [one = '', other = '', third = ''] = recoveryCodes;
  const complete = (code: string) => outcomeOf(instance.oidc.completeOidc({ pending, code }));
  const outcomes = await Promise.all([complete(one), complete(other)]);
  expect([...outcomes].sort()).toEqual(['done', 'oidc_flow_invalid']);
  expect(await complete(third)).toBe('oidc_flow_invalid');
  const unused = outcomes[0] === 'done' ? other : one;
  for (const code of [unused, third]) expect(await outcomeOf(signIn(code))).toBe('done');
});

test('a pending sign-in expires after 10 minutes', async () => {
  const { pending, code } = await guardedAndLinked();
  identity.clock.advance(10 * MINUTE_MS);
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('oidc_flow_invalid');
});

test.each<[string, (guarded: Awaited<ReturnType<typeof guardedAndLinked>>) => Promise<unknown>]>([
  ['the sessions of its account were ended', ({ accountId }) => instance.accounts.signOutEverywhere({ accountId })],
  ['the second factor was taken off by an operator', ({ accountId }) => runCommand(identity, ['two-factor-off', accountId])],
])('a pending sign-in is cancelled once %s', async (_what, change) => {
  const guarded = await guardedAndLinked();
  await change(guarded);
  for (const code of [present(guarded.recoveryCodes[1]), '']) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending: guarded.pending, code }))).toBe('oidc_flow_invalid');
  }
});

test.each([
  ['is taken over', 'p'.repeat(2_000), true],
  ['is dropped where it is too long for a cookie', '\\'.repeat(2_000), false],
])('the picture of a pending sign-in %s', async (_what, query, isTaken) => {
  const { accountId, code } = await guardedAndLinked();
  const picture = `https://images.test/?${query}`;
  issuer.claims = { ...issuer.claims, picture };
  const { outcome } = await finishAt(instance, issuer);
  if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
  const { pending } = outcome.value;
  expect(`oidc_pending=${pending}`.length).toBeLessThan(3_900);
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('done');
  const { account } = await instance.accounts.getAccount({ accountId });
  expect(account?.pictureUrl).toBe(isTaken ? picture : undefined);
});

test('an empty, changed or other sealed text is rejected', async () => {
  const { pending, code } = await guardedAndLinked();
  const { flow } = await comeBack(instance, issuer);
  const changed = `${pending.slice(0, -8)}AAAAAAAA`;
  for (const other of ['', 'nonsense', flow ?? '', changed, `${pending}AAAA`, 'A'.repeat(5_000)]) {
    expect(await outcomeOf(instance.oidc.completeOidc({ pending: other, code: code() })), other).toBe('oidc_flow_invalid');
  }
  expect(await outcomeOf(instance.oidc.completeOidc({ pending, code: code() }))).toBe('done');
});
