import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { sendJson } from '../testing/issuer.ts';
import { comeBack, linkAt, openTestOidc, signInAt, someone } from '../testing/oidc-flow.ts';
import { runCommand } from '../testing/operator.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone } from '../testing/sample.ts';
import { codeAt, guardSomeone, sessionIdOf } from '../testing/two-factor.ts';

const { identity, instance, issuer } = await openTestOidc();

/** A new account with a session. */
async function owner() {
  const { account, session } = await signUpSomeone(instance);
  const sessionId = await sessionIdOf(instance, session);
  return { account, accountId: account.id, token: session.token, csrfToken: session.csrfToken, sessionId };
}

/** A new account that signs in at the issuer alone. */
async function ownerWithoutPassword() {
  issuer.claims = someone();
  const { account, session } = await signInAt(instance, issuer);
  const sessionId = await sessionIdOf(instance, present(session));
  return { accountId: present(account).id, token: present(session).token, sessionId, claims: issuer.claims };
}

const links = async () => (await identity.db.query('select * from oidc_link order by issuer, subject')).rows;
const subjectsOf = async (accountId: string) =>
  (await instance.oidc.listOidcLinks({ accountId })).links.map(({ subject }) => subject);
const isAlive = async (token: string) =>
  (await outcomeOf(instance.authentication.authenticate({ credential: sessionCredential(token) }))) === 'done';

test('a linked account is signed in to by the subject, whatever its email', async () => {
  const { accountId, token, csrfToken } = await owner();
  const sub = randomUUID();
  issuer.claims = { sub, email: 'other@example.test', picture: 'https://images.test/linked.png' };
  for (let i = 0; i < 2; i += 1) {
    const { outcome } = await linkAt(instance, issuer, { accountId, token });
    expect(outcome).toMatchObject({ case: 'linked', value: { csrfToken, account: { id: accountId } } });
  }
  expect(await subjectsOf(accountId)).toEqual([sub]);
  issuer.claims = { sub };
  expect((await signInAt(instance, issuer)).account).toMatchObject({
    id: accountId,
    pictureUrl: 'https://images.test/linked.png',
  });
});

test('a subject is linked to one account, also by concurrent links', async () => {
  const owners = await Promise.all(Array.from({ length: 6 }, owner));
  const outcomes = await Promise.all(owners.map((one) => outcomeOf(linkAt(instance, issuer, one))));
  expect(outcomes.sort()).toEqual(['done', ...Array(5).fill('oidc_subject_linked')]);
  const before = await links();
  const error = await refusalOf(linkAt(instance, issuer, await owner()));
  expect(error).toMatchObject({ reason: 'oidc_subject_linked', kind: 'conflict', code: 'account_exists' });
  expect(await links()).toEqual(before);
});

test('a link needs a session of its account', async () => {
  const [victim, attacker] = [await owner(), await owner()];
  const before = await links();
  const codesSent = () => issuer.asked.filter((path) => path === '/token').length;
  const sent = codesSent();
  for (const sessionToken of [attacker.token, '', `${victim.token}A`]) {
    const back = await comeBack(instance, issuer, { linkAccountId: victim.accountId });
    expect(await outcomeOf(instance.oidc.finishOidc({ ...back, sessionToken })), sessionToken).toBe('session_invalid');
  }
  expect(codesSent()).toBe(sent);
  issuer.userInfo = {};
  const fresh = identity.connect({ env: issuer.env() });
  issuer.answers['/userinfo'] = (_req, res) => {
    const ended = instance.accounts.signOutEverywhere({ accountId: victim.accountId });
    void ended.then(() => sendJson(res, 200, { sub: issuer.claims.sub }));
  };
  expect(await outcomeOf(linkAt(fresh, issuer, victim))).toBe('session_invalid');
  expect(await links()).toEqual(before);
});

test.each<[string, (accountId: string) => Promise<unknown>]>([
  ['the password was reset', (accountId) => runCommand(identity, ['reset-password', accountId], { input: PASSWORD })],
  ['the sessions were ended', (accountId) => instance.accounts.signOutEverywhere({ accountId })],
])('a link under way is cancelled once %s, also for a later session', async (_what, change) => {
  const { account, accountId } = await owner();
  const back = await comeBack(instance, issuer, { linkAccountId: accountId });
  await change(accountId);
  const { session } = await instance.accounts.signIn({ email: account.email, password: PASSWORD });
  const finish = instance.oidc.finishOidc({ ...back, sessionToken: present(session).token });
  expect(await outcomeOf(finish)).toBe('oidc_flow_invalid');
  expect(await subjectsOf(accountId)).toEqual([]);
});

test('no code is used up while the issuer is unavailable', async () => {
  const { accountId, code } = await guardSomeone(identity);
  const fresh = identity.connect({ env: issuer.env() });
  issuer.answers['/.well-known/openid-configuration'] = (_req, res) => void res.destroy();
  const link = () => outcomeOf(comeBack(fresh, issuer, { linkAccountId: accountId, code: code() }));
  expect(await link()).toBe('oidc_issuer_unavailable');
  issuer.answers = {};
  expect(await link()).toBe('done');
});

test('links are listed, and removed by identifier, name and subject', async () => {
  const [{ accountId, token }, bystander] = [await owner(), await owner()];
  const [subject, other, theirs] = [randomUUID(), randomUUID(), randomUUID()].toSorted();
  for (const [sub, whose] of [
    [subject, { accountId, token }],
    [other, { accountId, token }],
    [theirs, bystander],
  ] as const) {
    issuer.claims = { sub };
    await linkAt(instance, issuer, whose);
  }
  const named = { accountId, issuer: 'test', password: PASSWORD };
  const listed = (await instance.oidc.listOidcLinks({ accountId })).links;
  expect(listed).toMatchObject([subject, other].map((one) => ({ issuer: issuer.url, name: 'test', subject: one })));
  expect(await instance.oidc.unlinkOidc({ ...named, subject: present(other) })).toMatchObject({ removed: 1 });
  expect(await outcomeOf(instance.oidc.unlinkOidc({ ...named, subject: present(theirs) }))).toBe('oidc_link_not_found');
  expect(await instance.oidc.unlinkOidc({ ...named, issuer: issuer.url })).toMatchObject({ removed: 1 });
  expect([await subjectsOf(accountId), await subjectsOf(bystander.accountId)]).toEqual([[], [theirs]]);
  issuer.claims = { sub: subject };
  expect(await outcomeOf(signInAt(instance, issuer))).toBe('oidc_email_unverified');
});

test('the last link of an account without a password stays, also in concurrent removals', async () => {
  const { accountId, token, sessionId, claims } = await ownerWithoutPassword();
  issuer.claims = { sub: 'the-second' };
  const back = await comeBack(instance, issuer, { linkAccountId: accountId, password: '', sessionId });
  await instance.oidc.finishOidc({ ...back, sessionToken: token });
  const unlink = (subject: object) => outcomeOf(instance.oidc.unlinkOidc({ accountId, issuer: 'test', sessionId, ...subject }));
  expect(await unlink({})).toBe('oidc_link_needed');
  const outcomes = await Promise.all([unlink({ subject: claims.sub }), unlink({ subject: 'the-second' })]);
  expect(outcomes.sort()).toEqual(['done', 'oidc_link_needed']);
});

test('an owner without a password links right after signing in, whatever second factor there is', async () => {
  const { accountId, sessionId } = await ownerWithoutPassword();
  const link = (code?: string) => outcomeOf(comeBack(instance, issuer, { ...proof, ...(code && { code }) }));
  const proof = { linkAccountId: accountId, password: '', sessionId };
  expect(await link()).toBe('done');
  const { secret } = await instance.twoFactor.setUpTwoFactor({ accountId });
  const code = codeAt(secret, identity.clock.now());
  const { recoveryCodes } = await instance.twoFactor.enableTwoFactor({ accountId, sessionId, code });
  identity.clock.advance(10 * MINUTE_MS);
  expect(await link(recoveryCodes[0])).toBe('oidc_session_too_old');
  const error = { reason: 'oidc_session_too_old', kind: 'forbidden', code: 'session_required' };
  expect(await refusalOf(comeBack(instance, issuer, proof))).toMatchObject(error);
});

test('removing a link ends the other sessions of the account', async () => {
  const { accountId, token, sessionId } = await owner();
  await linkAt(instance, issuer, { accountId, token });
  const opened = present((await signInAt(instance, issuer)).session);
  await instance.oidc.unlinkOidc({ accountId, issuer: 'test', password: PASSWORD, sessionId });
  expect([await isAlive(token), await isAlive(opened.token)]).toEqual([true, false]);
});
