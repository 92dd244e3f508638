import { beforeEach, expect, test } from 'vitest';
import { outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { comeBack, linkAt, signInAt } from '../testing/oidc-flow.fixture.ts';
import { openTestOidc } from '../testing/oidc-suite.fixture.ts';
import { PASSWORD, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';
import { guardSomeone, sessionIdOf } from '../testing/two-factor.fixture.ts';

const { identity, instance, issuer, call } = await openTestOidc();
beforeEach(() => issuer.reset());

/** An account with a session and a link. */
async function linked() {
  issuer.reset();
  const { account, session } = await signUpSomeone(instance);
  const owner = { accountId: account.id, token: session.token, sessionId: await sessionIdOf(identity, session) };
  await linkAt(instance, issuer, owner);
  return { account, ...owner, subject: String(issuer.claims.sub) };
}

const forgetPassword = (accountId: string) =>
  identity.db.query('update account set password_hash = null where id = $1', [accountId]);
const subjectsOf = async (accountId: string) =>
  (await instance.oidc.listOidcLinks({ accountId })).links.map(({ subject }) => subject);

test('a link needs the password', async () => {
  const { account } = await signUpSomeone(instance);
  const link = (password: string) => refusalOf(comeBack(instance, issuer, { linkAccountId: account.id, password }));
  expect(await link('')).toMatchObject({ reason: 'password_missing', kind: 'invalid', code: 'bad_request' });
  for (const wrong of ['wrong password', `${PASSWORD}x`]) {
    expect(await link(wrong)).toMatchObject({ reason: 'oidc_password_wrong', kind: 'invalid', code: 'bad_request' });
  }
  expect(await outcomeOf(comeBack(instance, issuer, { linkAccountId: account.id }))).toBe('done');
});

test('a link needs a code where there is a second factor, and counts what is wrong', async () => {
  const { accountId, code, wrongCode, recoveryCodes } = await guardSomeone({ ...identity, ...instance });
  const link = (proof: { password?: string; code?: string }) =>
    outcomeOf(comeBack(instance, issuer, { linkAccountId: accountId, ...proof }));
  expect(await link({})).toBe('two_factor_required');
  expect(await link({ code: code() })).toBe('done');
  expect(await link({ code: code() })).toBe('two_factor_code_invalid');
  const outcomes = [];
  for (let i = 0; i < 3; i += 1) outcomes.push(await link({ code: wrongCode() }), await link({ password: 'wrong', code: '1' }));
  expect(outcomes.slice(-1)).toEqual(['two_factor_attempts_reached']);
  expect(outcomes).toContain('oidc_password_wrong');
  expect(await link({ code: recoveryCodes[0] ?? '' })).toBe('done');
});

test('no code is used up where the issuer does not answer', async () => {
  const { accountId, code } = await guardSomeone({ ...identity, ...instance });
  const fresh = await identity.connect({ env: issuer.env() });
  issuer.answers['/.well-known/openid-configuration'] = (_req, res) => void res.destroy();
  const link = () => outcomeOf(comeBack(fresh, issuer, { linkAccountId: accountId, code: code() }));
  expect(await link()).toBe('oidc_issuer_unavailable');
  issuer.answers = {};
  expect(await link()).toBe('done');
});

test('links are shown, and removed by identifier, by name and by subject', async () => {
  const { accountId, token, subject } = await linked();
  const bystander = await linked();
  const other = 'somebody-else';
  issuer.claims = { sub: other };
  await linkAt(instance, issuer, { accountId, token });
  const named = { accountId, issuer: 'test', password: PASSWORD };
  const { links } = await instance.oidc.listOidcLinks({ accountId });
  expect(links).toMatchObject([subject, other].map((one) => ({ issuer: issuer.url, name: 'test', subject: one })));
  expect(await instance.oidc.unlinkOidc({ ...named, subject: other })).toMatchObject({ removed: 1 });
  expect(await subjectsOf(accountId)).toEqual([subject]);
  const unknown = { ...named, issuer: issuer.url, subject: bystander.subject };
  expect(await outcomeOf(instance.oidc.unlinkOidc(unknown))).toBe('oidc_link_not_found');
  expect(await instance.oidc.unlinkOidc({ ...named, issuer: issuer.url })).toMatchObject({ removed: 1 });
  expect(await outcomeOf(instance.oidc.unlinkOidc({ ...named, issuer: issuer.url }))).toBe('oidc_link_not_found');
  expect(await subjectsOf(bystander.accountId)).toEqual([bystander.subject]);
  issuer.claims = { sub: subject };
  expect(await outcomeOf(signInAt(instance, issuer))).toBe('oidc_email_unverified');
});

test('a link is removed by nobody without the password, which is looked at only for links that there are', async () => {
  const { accountId, subject } = await linked();
  const unlink = (more: object) => refusalOf(instance.oidc.unlinkOidc({ accountId, issuer: 'test', ...more }));
  expect(await unlink({ password: '' })).toMatchObject({ reason: 'password_missing' });
  for (const wrong of ['wrong password', `${PASSWORD}x`]) {
    const refusal = { reason: 'oidc_password_wrong', kind: 'invalid', code: 'bad_request' };
    expect(await unlink({ password: wrong })).toMatchObject(refusal);
  }
  expect(await unlink({ password: 'wrong password', subject: 'nobody' })).toMatchObject({ reason: 'oidc_link_not_found' });
  expect(await subjectsOf(accountId)).toEqual([subject]);
});

test('removing a link needs a code where there is a second factor, uses none up in vain, and counts what is wrong', async () => {
  const { accountId, session, code, wrongCode, recoveryCodes } = await guardSomeone({ ...identity, ...instance });
  const back = await comeBack(instance, issuer, { linkAccountId: accountId, code: code(-1) });
  await instance.oidc.finishOidc({ ...back, sessionToken: session.token });
  const unlink = (more: object) =>
    outcomeOf(instance.oidc.unlinkOidc({ accountId, issuer: 'test', password: PASSWORD, ...more }));
  expect(await unlink({})).toBe('two_factor_required');
  expect(await unlink({ code: recoveryCodes[0], issuer: 'nowhere' })).toBe('oidc_link_not_found');
  const outcomes = [];
  for (let i = 0; i < 3; i += 1)
    outcomes.push(await unlink({ code: wrongCode() }), await unlink({ password: 'wrong', code: '1' }));
  expect(outcomes.slice(-1)).toEqual(['two_factor_attempts_reached']);
  expect(outcomes).toContain('oidc_password_wrong');
  expect(await subjectsOf(accountId)).toHaveLength(1);
  expect(await unlink({ code: recoveryCodes[0] })).toBe('done');
  expect(await subjectsOf(accountId)).toEqual([]);
});

test('the last way to sign in to an account without a password stays, also of two removed at once', async () => {
  const { accountId, token, sessionId, subject } = await linked();
  issuer.claims = { sub: 'the-second' };
  await linkAt(instance, issuer, { accountId, token });
  await forgetPassword(accountId);
  const unlink = (one?: string) =>
    outcomeOf(instance.oidc.unlinkOidc({ accountId, issuer: 'test', sessionId, ...(one !== undefined && { subject: one }) }));
  expect(await unlink()).toBe('oidc_link_needed');
  const outcomes = await Promise.all([unlink(subject), unlink('the-second')]);
  expect(outcomes.sort()).toEqual(['done', 'oidc_link_needed']);
  expect(await subjectsOf(accountId)).toHaveLength(1);
});

test('a sign-in that waits for a code comes to nothing once its link is removed', async () => {
  const { accountId, session, code, recoveryCodes } = await guardSomeone({ ...identity, ...instance });
  const back = await comeBack(instance, issuer, { linkAccountId: accountId, code: code(-1) });
  await instance.oidc.finishOidc({ ...back, sessionToken: session.token });
  const { outcome } = await instance.oidc.finishOidc(await comeBack(instance, issuer));
  if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
  await instance.oidc.unlinkOidc({ accountId, issuer: 'test', password: PASSWORD, code: recoveryCodes[0] ?? '' });
  const complete = instance.oidc.completeOidc({ pending: outcome.value.pending, code: code() });
  expect(await outcomeOf(complete)).toBe('oidc_flow_invalid');
});

test('operators see links, and remove the last one too', async () => {
  const { account, accountId, token, subject } = await linked();
  await forgetPassword(accountId);
  const listed = await call(['list-links', account.username], { env: issuer.env() });
  expect(listed.text).toContain(` ${issuer.url}  ${subject}\n1 link of ${account.username}`);
  expect(listed.data.links).toMatchObject([{ issuer: issuer.url, subject, name: 'test' }]);
  const unlink = () => call(['unlink', account.email, issuer.url, '--subject', subject]);
  expect(await unlink()).toMatchObject({ text: `Removed 1 link of ${account.username} (${account.email}) and ended 1 session.` });
  const used = instance.authentication.authenticate({ credential: sessionCredential(token) });
  expect(await outcomeOf(used)).toBe('session_invalid');
  expect(await unlink()).toMatchObject({
    refusal: 'oidc_link_not_found',
    message: `${account.username} (${account.email}) has no such link.`,
  });
  expect(await subjectsOf(accountId)).toEqual([]);
});
