import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { REDIRECT_URI, sendJson } from '../testing/issuer.fixture.ts';
import { comeBack, linkAt, signInAt } from '../testing/oidc-flow.fixture.ts';
import { openTestOidc } from '../testing/oidc-suite.fixture.ts';
import { PASSWORD, present, signUpSomeone } from '../testing/sample.fixture.ts';

const { identity, instance, issuer, call } = await openTestOidc();
beforeEach(() => issuer.reset());

/** A new account with a session. */
async function owner() {
  const { account, session } = await signUpSomeone(instance);
  return { account, accountId: account.id, token: session.token, csrfToken: session.csrfToken };
}

async function links(): Promise<unknown[]> {
  return (await identity.db.query('select * from oidc_link order by issuer, subject')).rows;
}

test('a linked account is signed in to by the subject, under whatever email it has there', async () => {
  const { accountId, token, csrfToken } = await owner();
  const sub = randomUUID();
  issuer.claims = { sub, email: 'other@example.test', picture: 'https://images.test/linked.png' };
  const { outcome } = await linkAt(instance, issuer, { accountId, token });
  expect(outcome).toMatchObject({ case: 'linked', value: { csrfToken, account: { id: accountId } } });
  issuer.claims = { sub };
  const { account } = await signInAt(instance, issuer);
  expect(account).toMatchObject({ id: accountId, avatarUrl: 'https://images.test/linked.png' });
});

test('linking opens no session and ends none', async () => {
  const { accountId, token } = await owner();
  const count = async () => (await identity.db.query('select count(*)::int as n from session')).rows[0].n;
  const before = await count();
  await linkAt(instance, issuer, { accountId, token });
  expect(await count()).toBe(before);
});

test('linking the same subject again changes nothing', async () => {
  const { accountId, token } = await owner();
  await linkAt(instance, issuer, { accountId, token });
  const before = await links();
  expect(await outcomeOf(linkAt(instance, issuer, { accountId, token }))).toBe('done');
  expect(await links()).toEqual(before);
});

test('a subject belongs to one account', async () => {
  const [first, second] = [await owner(), await owner()];
  await linkAt(instance, issuer, first);
  const before = await links();
  issuer.claims = { ...issuer.claims, picture: 'https://images.test/never.png' };
  const refusal = await refusalOf(linkAt(instance, issuer, second));
  expect(refusal).toMatchObject({ reason: 'oidc_subject_linked', kind: 'conflict', code: 'account_exists' });
  expect(await links()).toEqual(before);
  expect((await instance.accounts.getAccount({ accountId: second.accountId })).account?.avatarUrl).toBeUndefined();
});

test('of links of one subject to several accounts at once, one holds', async () => {
  const owners = await Promise.all(Array.from({ length: 6 }, owner));
  const outcomes = await Promise.all(owners.map((one) => outcomeOf(linkAt(instance, issuer, one))));
  expect(outcomes.sort()).toEqual(['done', ...Array(5).fill('oidc_subject_linked')]);
});

test('an account may be linked to several subjects', async () => {
  const one = await owner();
  await linkAt(instance, issuer, one);
  const first = issuer.claims;
  issuer.reset();
  await linkAt(instance, issuer, one);
  expect((await signInAt(instance, issuer)).account?.id).toBe(one.accountId);
  issuer.claims = first;
  expect((await signInAt(instance, issuer)).account?.id).toBe(one.accountId);
});

test('a link is nothing under another session, under none, and under one that has ended', async () => {
  const [victim, attacker] = [await owner(), await owner()];
  const before = await links();
  const codesSent = () => issuer.asked.filter((path) => path === '/token').length;
  const sent = codesSent();
  for (const sessionToken of [attacker.token, '', 'nonsense', `${victim.token}A`]) {
    const back = await comeBack(instance, issuer, { linkAccountId: victim.accountId });
    expect(await outcomeOf(instance.oidc.finishOidc({ ...back, sessionToken })), sessionToken).toBe('session_invalid');
  }
  const back = await comeBack(instance, issuer, { linkAccountId: victim.accountId });
  await instance.accounts.signOutEverywhere({ accountId: victim.accountId });
  expect(await outcomeOf(instance.oidc.finishOidc({ ...back, sessionToken: victim.token }))).toBe('session_invalid');
  expect(await links()).toEqual(before);
  expect(codesSent()).toBe(sent);
});

test('a link is nothing under a session that ends while the issuer is asked', async () => {
  const { accountId, token } = await owner();
  const before = await links();
  issuer.userInfo = {};
  const fresh = await identity.connect({ env: issuer.env() });
  issuer.answers['/userinfo'] = (_req, res) => {
    void instance.accounts.signOutEverywhere({ accountId }).then(() => sendJson(res, 200, { sub: issuer.claims.sub }));
  };
  expect(await outcomeOf(linkAt(fresh, issuer, { accountId, token }))).toBe('session_invalid');
  expect(await links()).toEqual(before);
});

test.each<[string, (accountId: string) => Promise<unknown>]>([
  ['the password was reset', (accountId) => call(['reset-password', accountId], { input: PASSWORD })],
  ['the sessions were ended', (accountId) => instance.accounts.signOutEverywhere({ accountId })],
])('a link that was begun before is nothing once %s, also under a session opened since', async (_what, change) => {
  const { account, accountId } = await owner();
  const before = await links();
  const back = await comeBack(instance, issuer, { linkAccountId: accountId });
  await change(accountId);
  const { session } = await instance.accounts.signIn({ email: account.email, password: PASSWORD });
  const finish = instance.oidc.finishOidc({ ...back, sessionToken: present(session).token });
  expect(await outcomeOf(finish)).toBe('oidc_flow_invalid');
  expect(await links()).toEqual(before);
});

test('a link is to an account, and to a URL that there can be', async () => {
  const request = { issuer: 'test', redirectUri: REDIRECT_URI };
  expect(await outcomeOf(instance.oidc.startOidc({ ...request, linkAccountId: 'nobody' }))).toBe('account_not_found');
  expect(await outcomeOf(instance.oidc.startOidc({ ...request, redirectUri: 'nowhere' }))).toBe('oidc_request_invalid');
});
