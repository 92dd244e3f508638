import { AS_CALLER, auditReader } from '@latchkey/audit/testing/audit-reader';
import { eventually } from '@latchkey/testkit/eventually';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { NEW_PASSWORD, openTestMail } from '../testing/mail-flow.ts';
import { PASSWORD, someSignUp } from '../testing/sample.ts';

const { identity, server, forgot, hasSentAllTo, owner, signIn, tokenFor, reset } = await openTestMail();
const { clock, credentials } = identity;

type Owner = Awaited<ReturnType<typeof owner>>;

const start = ({ accountId, sessionId }: Omit<Owner, 'token'>, email: string, password = PASSWORD) =>
  credentials.startEmailChange({ accountId, sessionId, email, password });
const confirm = ({ accountId }: Pick<Owner, 'accountId'>, token = '') =>
  outcomeOf(credentials.confirmEmailChange({ accountId, token }, AS_CALLER));

/** Starts a change to a new address; returns it with the token that it got. */
async function started(one: Owner) {
  const { email } = someSignUp();
  await start(one, email);
  const [mail] = await server.waitForMails(email);
  return { email, token: mail?.token, link: mail?.link };
}

describe('a change of the email', () => {
  test('is confirmed once by the mail to the new address, and announced to the old one', async () => {
    const [one, other] = [await owner(), await owner()];
    const forgotten = await tokenFor(one.email);
    const { email, token, link } = await started(one);
    expect(link).toBe(`http://localhost:8080/confirm-email#token=${token}`);
    const [, notice] = await server.waitForMails(one.email, 2);
    expect(notice).toMatchObject({ token: '', raw: expect.stringContaining('change your password') });
    expect(await outcomeOf(signIn(email))).toBe('sign_in_failed');
    expect(await confirm(other, token)).toBe('link_invalid');
    expect(await reset(token ?? '')).toBe('link_invalid');
    expect(await confirm(one, token)).toBe('done');
    expect([await outcomeOf(signIn(email)), await outcomeOf(signIn(one.email))]).toEqual(['done', 'sign_in_failed']);
    for (const used of [token, forgotten, '']) expect(await confirm(one, used)).toBe('link_invalid');
    expect(await reset(forgotten)).toBe('link_invalid');
    const entries = await auditReader(identity.service.routes)(one.accountId);
    expect(entries).toContainEqual(expect.objectContaining({ action: 'account.email_changed', changes: {}, actor: 'session' }));
    expect(JSON.stringify(entries)).not.toContain(email);
  });

  test('is rejected for an address that an account has, or gets before the confirmation', async () => {
    const [one, other] = [await owner(), await owner()];
    expect(await outcomeOf(start(one, other.email.toUpperCase()))).toBe('account_exists');
    const { email, token } = await started(one);
    await identity.accounts.signUp({ ...someSignUp(), email });
    expect(await confirm(one, token)).toBe('account_exists');
  });

  test('is void after a change of the password, and after 30 minutes', async () => {
    const one = await owner();
    const first = await started(one);
    await credentials.changePassword({ ...one, password: PASSWORD, newPassword: NEW_PASSWORD });
    expect(await confirm(one, first.token)).toBe('link_invalid');
    const other = await owner();
    const second = await started(other);
    clock.advance(30 * MINUTE_MS);
    expect(await confirm(other, second.token)).toBe('link_invalid');
  });
});

describe('5 mails with a link an hour', () => {
  test('go to an account', async () => {
    const one = await owner();
    await tokenFor(one.email);
    for (let i = 0; i < 4; i += 1) await start(one, someSignUp().email);
    const sixth = start(one, someSignUp().email);
    const metadata = { policy: 'mails', limit: '5', windowSeconds: '3600', remaining: '0', retryAfterSeconds: '3600' };
    expect(await refusalOf(sixth)).toMatchObject({ reason: 'mail_limit_reached', metadata });
    await forgot(one.email);
    await eventually(() => hasSentAllTo(one.email));
    expect(server.mailsTo(one.email).filter(({ token }) => token !== '')).toHaveLength(1);
    clock.advance(60 * MINUTE_MS);
    await start(one, someSignUp().email);
  });

  test('go to an address, also when several accounts ask concurrently', async () => {
    const { email } = someSignUp();
    const owners = await Promise.all(Array.from({ length: 7 }, owner));
    const outcomes = await Promise.all(owners.map((one, i) => outcomeOf(start(one, i % 2 ? email : email.toUpperCase()))));
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(5);
    expect(outcomes.filter((outcome) => outcome === 'mail_limit_reached')).toHaveLength(2);
  });
});
