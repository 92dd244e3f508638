import { randomUUID } from 'node:crypto';
import type { Session } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { beforeEach, expect, test } from 'vitest';
import { outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { comeBack, signInAt } from '../testing/oidc-flow.fixture.ts';
import { openTestOidc } from '../testing/oidc-suite.fixture.ts';
import { present, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';
import { codeAt, sessionIdOf } from '../testing/two-factor.fixture.ts';

/** An account that signs in at an issuer alone has no password to show: its owner shows that they can sign in there. */
const { identity, instance, issuer } = await openTestOidc();
beforeEach(() => issuer.reset());

/** Somebody who has just signed in at the issuer for the first time. */
async function newcomer() {
  const name = `oidc-${randomUUID().slice(-12)}`;
  issuer.claims = { sub: randomUUID(), preferred_username: name, email: `${name}@example.test`, email_verified: true };
  const { account, session } = await signInAt(instance, issuer);
  const sessionId = await sessionIdOf(instance, present(session));
  return { accountId: present(account).id, session: present(session), sessionId, claims: issuer.claims };
}

const link = (linkAccountId: string, proof: { sessionId?: string; code?: string }) =>
  outcomeOf(comeBack(instance, issuer, { linkAccountId, password: '', ...proof }));
const isAlive = async ({ token }: Session) =>
  (await outcomeOf(instance.authentication.authenticate({ credential: sessionCredential(token) }))) === 'done';

test('who has no password makes and removes links for 10 minutes after signing in, and then has to sign in again', async () => {
  const { accountId, session, sessionId, claims } = await newcomer();
  identity.clock.advance(10 * MINUTE_MS - 1);
  issuer.claims = { sub: randomUUID() };
  const back = await comeBack(instance, issuer, { linkAccountId: accountId, password: '', sessionId });
  expect(await outcomeOf(instance.oidc.finishOidc({ ...back, sessionToken: session.token }))).toBe('done');
  const unlink = (id: string) => {
    const request = { accountId, issuer: 'test', subject: String(issuer.claims.sub), sessionId: id };
    return instance.oidc.unlinkOidc(request);
  };
  identity.clock.advance(1);
  expect(await link(accountId, { sessionId })).toBe('oidc_session_too_old');
  const refusal = { reason: 'oidc_session_too_old', kind: 'forbidden', code: 'session_required' };
  expect(await refusalOf(unlink(sessionId))).toMatchObject({ ...refusal, message: expect.stringContaining('Sign in again') });
  expect((await instance.oidc.listOidcLinks({ accountId })).links).toHaveLength(2);
  const { sub } = issuer.claims;
  issuer.claims = claims;
  const again = await sessionIdOf(instance, present((await signInAt(instance, issuer)).session));
  issuer.claims = { sub };
  expect(await link(accountId, { sessionId })).toBe('oidc_session_too_old');
  expect(await link(accountId, { sessionId: again })).toBe('done');
  expect(await outcomeOf(unlink(again))).toBe('done');
});

test('no session of another account is shown for it, nor one that was ended, nor none', async () => {
  const [{ accountId, session, sessionId }, other] = [await newcomer(), await newcomer()];
  for (const wrong of [other.sessionId, '', 'nonsense'])
    expect(await link(accountId, { sessionId: wrong })).toBe('session_invalid');
  expect(await link(accountId, { sessionId })).toBe('done');
  await instance.accounts.signOut({ accountId, sessionId });
  expect(await isAlive(session)).toBe(false);
  expect(await link(accountId, { sessionId })).toBe('session_invalid');
});

test('a second factor that a session has switched on since does not make up for it', async () => {
  const { accountId, sessionId } = await newcomer();
  identity.clock.advance(10 * MINUTE_MS);
  const { secret } = await instance.twoFactor.setUpTwoFactor({ accountId });
  const { recoveryCodes } = await instance.twoFactor.enableTwoFactor({
    accountId,
    sessionId,
    code: codeAt(secret, identity.clock.now()),
  });
  const code = present(recoveryCodes[0]);
  expect(await link(accountId, { sessionId, code })).toBe('oidc_session_too_old');
});

test('who has a password needs no new session, however old it is', async () => {
  const { account } = await signUpSomeone(instance);
  identity.clock.advance(60 * MINUTE_MS);
  expect(await outcomeOf(comeBack(instance, issuer, { linkAccountId: account.id }))).toBe('done');
});

test('removing a link ends the sessions that it may have opened, but not the one that asks', async () => {
  const { accountId, session, sessionId, claims } = await newcomer();
  issuer.claims = { sub: randomUUID() };
  const back = await comeBack(instance, issuer, { linkAccountId: accountId, password: '', sessionId });
  await instance.oidc.finishOidc({ ...back, sessionToken: session.token });
  const opened = present((await signInAt(instance, issuer)).session);
  expect([await isAlive(session), await isAlive(opened)]).toEqual([true, true]);
  const request = { accountId, issuer: 'test', subject: String(issuer.claims.sub), sessionId };
  expect(await outcomeOf(instance.oidc.unlinkOidc({ ...request, subject: 'nobody' }))).toBe('oidc_link_not_found');
  expect(await isAlive(opened)).toBe(true);
  await instance.oidc.unlinkOidc(request);
  expect([await isAlive(session), await isAlive(opened)]).toEqual([true, false]);
  issuer.claims = claims;
  expect(present((await signInAt(instance, issuer)).account).id).toBe(accountId);
});
