import { AS_CALLER, auditReader } from '@latchkey/audit/testing/audit-reader';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { describe, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { NEW_PASSWORD, openTestMail } from '../testing/mail-flow.ts';
import { runCommand } from '../testing/operator.ts';
import { PASSWORD, present, someSignUp } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const { identity, server, forgot, hasSentAllTo, owner, signIn, useSession, tokenFor, reset } = await openTestMail();
const { clock, credentials, db } = identity;

const lastEntry = async (accountId: string) => {
  const { action, changes, actor } = present((await auditReader(identity.service.routes)(accountId)).at(-1));
  return [action, changes, actor];
};
const forgetPassword = (accountId: string) => db.query('update account set password_hash = null where id = $1', [accountId]);

describe('a changed password', () => {
  test('signs in from then on, and ends the other sessions and all links', async () => {
    const one = await owner();
    const token = await tokenFor(one.email);
    const other = present((await signIn(one.email)).session);
    await credentials.changePassword({ ...one, password: PASSWORD, newPassword: NEW_PASSWORD }, AS_CALLER);
    expect([await useSession(one.token), await useSession(other.token)]).toEqual(['done', 'session_invalid']);
    expect(await outcomeOf(signIn(one.email))).toBe('sign_in_failed');
    expect(await outcomeOf(signIn(one.email, NEW_PASSWORD))).toBe('done');
    expect(await reset(token)).toBe('link_invalid');
    const entries = await auditReader(identity.service.routes)(one.accountId);
    expect(entries).toContainEqual(
      expect.objectContaining({ action: 'account.password_changed', changes: { endedSessions: 1 }, actor: 'session' }),
    );
  });

  test('may be the first one, and has the rules of passwords', async () => {
    const one = await owner();
    await forgetPassword(one.accountId);
    const change = (newPassword: string) => outcomeOf(credentials.changePassword({ ...one, newPassword }));
    expect(await change('too short')).toBe('password_invalid');
    expect(await change(NEW_PASSWORD)).toBe('done');
    expect(await outcomeOf(signIn(one.email, NEW_PASSWORD))).toBe('done');
  });
});

describe('a forgotten password', () => {
  test('is reset once by a mail, which ends all sessions and keeps the second factor', async () => {
    const { account, accountId, session, signIn: signInGuarded, code } = await guardSomeone(identity);
    await forgot(account.email.toUpperCase());
    const [mail] = await server.waitForMails(account.email);
    expect(mail?.link).toBe(`http://localhost:8080/reset-password#token=${mail?.token}`);
    expect(mail?.raw).toContain('From: Latchkey <latchkey@example.test>');
    const outcomes = await Promise.all([reset(present(mail).token), reset(present(mail).token)]);
    expect(outcomes.toSorted()).toEqual(['done', 'link_invalid']);
    expect(await useSession(session.token)).toBe('session_invalid');
    expect(await outcomeOf(signInGuarded(undefined, NEW_PASSWORD))).toBe('two_factor_required');
    expect(await outcomeOf(signInGuarded(code(), NEW_PASSWORD))).toBe('done');
    const entries = await auditReader(identity.service.routes)(accountId);
    expect(entries.map(({ action, changes }) => [action, changes])).toContainEqual([
      'account.password_reset',
      { endedSessions: 1 },
    ]);
  });

  test('is reset by no expired, void, foreign or made-up link', async () => {
    const one = await owner();
    const [old, first, second] = [await tokenFor(one.email), await tokenFor(one.email), await tokenFor(one.email)];
    const flipped = first.replace(/^./, (letter) => (letter === 'A' ? 'B' : 'A'));
    for (const token of ['', flipped, `${first}A`, '\0', 'x'.repeat(10_000)])
      expect(await reset(token), token).toBe('link_invalid');
    expect(await reset(first, 'too short')).toBe('password_invalid');
    expect(await reset(first)).toBe('done');
    expect(await reset(second)).toBe('link_invalid');
    const late = await tokenFor(one.email);
    clock.advance(30 * MINUTE_MS);
    for (const token of [old, late]) expect(await reset(token)).toBe('link_invalid');
  });

  test('is answered by the same statements whether or not the account exists', async () => {
    const [one, unknown] = [await owner(), someSignUp().email];
    // Without Redis, no worker adds statements.
    const { credentials } = identity.connect({ env: { REDIS_URL: 'redis://127.0.0.1:1' } });
    const statementsFor = async (email: string) =>
      (await statementsOf(() => credentials.startPasswordReset({ email }))).map(({ text }) => text);
    const sent = await statementsFor(unknown);
    expect(sent.filter((text) => text.includes('insert into mail '))).toHaveLength(1);
    expect(await statementsFor(one.email)).toEqual(sent);
    const other = someSignUp().email;
    await forgot(other);
    await eventually(() => hasSentAllTo(other));
    expect(server.mailsTo(other)).toEqual([]);
  });

  test('sends an account 5 mails an hour, concurrent requests included', async () => {
    const one = await owner();
    await Promise.all(Array.from({ length: 8 }, () => forgot(one.email)));
    await forgot(one.email.toUpperCase());
    await server.waitForMails(one.email, 5);
    await eventually(() => hasSentAllTo(one.email));
    expect(server.mailsTo(one.email)).toHaveLength(5);
    clock.advance(60 * MINUTE_MS);
    await tokenFor(one.email);
  });
});

test('a mail is tried again after an error of the server, and not if its recipient is rejected', async () => {
  const one = await owner();
  server.control.failures.push(451);
  await forgot(one.email);
  await server.waitForMails(one.email);
  const rejected = { ...someSignUp(), email: `rejected-${one.email}` };
  await identity.accounts.signUp(rejected);
  const { attempts } = server.control;
  await forgot(rejected.email);
  await eventually(() => hasSentAllTo(rejected.email));
  expect(server.control.attempts).toBe(attempts + 1);
});

test('mails that Redis lost, or did not take, are sent later', async () => {
  const one = await owner();
  const silent = identity.connect({ env: { REDIS_URL: 'redis://127.0.0.1:1' } });
  await silent.credentials.startPasswordReset({ email: one.email });
  const restarted = identity.connect();
  await restarted.service.start();
  await server.waitForMails(one.email);
});

test('an operator resets passwords and changes emails where no mail is sent', async () => {
  const one = await owner();
  const token = await tokenFor(one.email);
  const without = identity.connect({ env: { SMTP_URL: '', MAIL_FROM: '' } });
  const email = someSignUp().email;
  const calls = [
    without.credentials.startPasswordReset({ email: one.email }),
    without.credentials.startEmailChange({ ...one, email, password: PASSWORD }),
    without.credentials.confirmEmailChange({ ...one, token }),
  ];
  expect(await Promise.all(calls.map(outcomeOf))).toEqual(Array(3).fill('mail_not_configured'));
  expect(await runCommand(identity, ['change-email', one.email, email])).toMatchObject({ account: { email } });
  expect(await lastEntry(one.accountId)).toEqual(['account.email_changed', {}, 'operator']);
  expect(await outcomeOf(signIn(email))).toBe('done');
  expect(await reset(token)).toBe('link_invalid');
  const { account } = await owner();
  expect(await runCommand(identity, ['change-email', account.id, email])).toMatchObject({ reason: 'account_exists' });
  expect(await runCommand(identity, ['change-email', account.id, 'nowhere'])).toMatchObject({ reason: 'email_invalid' });
});
