import { describe, expect, test } from 'vitest';
import { createTestPasswords, MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { REDIRECT_URI } from '../testing/issuer.ts';
import { openTestOidc } from '../testing/oidc-flow.ts';
import { PASSWORD, present, signUpSomeone, someSignUp } from '../testing/sample.ts';
import { type Guarded, guardSomeone, sessionIdOf } from '../testing/two-factor.ts';

/** A stolen session must allow no more guesses at the password than sign-in does. */
const { identity, issuer } = await openTestOidc();
const passwords = createTestPasswords();
const mail = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'latchkey@example.test' };
const instance = identity.connect({ env: { ...issuer.env(), ...mail }, passwords });

const REACHED = 'password_attempts_reached';
const WRONG = /password_wrong$/;

interface Proof {
  readonly accountId: string;
  readonly password: string;
  readonly code?: string;
  readonly sessionId?: string;
}

const link = ({ accountId, ...proof }: Proof) =>
  outcomeOf(instance.oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: accountId, ...proof }));
const unlink = (proof: Proof) => outcomeOf(instance.oidc.unlinkOidc({ issuer: 'test', subject: proof.accountId, ...proof }));
const change = (proof: Proof) => outcomeOf(instance.credentials.changePassword({ ...proof, newPassword: 'another passphrase' }));
const disable = (proof: Proof) => outcomeOf(instance.twoFactor.disableTwoFactor(proof));
const changeEmail = (proof: Proof) => outcomeOf(instance.credentials.startEmailChange({ ...proof, email: someSignUp().email }));
const remove = (proof: Proof) => outcomeOf(instance.accounts.deleteAccount(proof));

/** An account with two links and a second factor. */
async function guardLinked(): Promise<Guarded> {
  const guarded = await guardSomeone(identity);
  const insert = `insert into oidc_link select $1, subject, $2::text::uuid, now() from unnest(array[$2, 'other ' || $2]) subject`;
  await identity.db.query(insert, [issuer.url, guarded.accountId]);
  return guarded;
}

/** Such an account, of which only recovery codes are accepted now. */
async function withoutAttempts(): Promise<Guarded & { readonly recoveryCode: string }> {
  const guarded = await guardLinked();
  const { accountId } = guarded;
  const fail = () => outcomeOf(instance.twoFactor.verifyTwoFactorCode({ accountId, code: guarded.wrongCode() }));
  for (let i = 0; i < 5; i += 1) expect(await fail()).toBe('two_factor_code_invalid');
  return { ...guarded, recoveryCode: present(guarded.recoveryCodes[0]) };
}

const OPERATIONS = [
  ['link', link],
  ['unlink', unlink],
  ['disable the second factor', disable],
  ['delete the account', remove],
  ['change the password', change],
  ['change the email', changeEmail],
] as const;

describe.each(OPERATIONS)('to %s', (_what, prove) => {
  test('the password and a code are needed, and a rejected one leaves the code unused', async () => {
    const { accountId, code, wrongCode } = await guardLinked();
    expect(await prove({ accountId, password: '', code: code() })).toBe('password_missing');
    expect(await prove({ accountId, password: 'a guess', code: code() })).toMatch(WRONG);
    expect(await prove({ accountId, password: PASSWORD })).toMatch(/^two_factor_(required|code_invalid)$/);
    expect(await prove({ accountId, password: PASSWORD, code: wrongCode() })).toBe('two_factor_code_invalid');
    expect(await prove({ accountId, password: PASSWORD, code: code() })).toBe('done');
  });

  test('10 concurrent wrong passwords in 15 minutes are verified, also with a recovery code', async () => {
    const { accountId, recoveryCode: code } = await withoutAttempts();
    const guesses = Array.from({ length: 15 }, (_, i) => prove({ accountId, password: `guess ${i}`, code }));
    const outcomes = await Promise.all(guesses);
    expect(outcomes.filter((outcome) => WRONG.test(outcome))).toHaveLength(10);
    expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(5);
    const before = passwords.verified;
    expect(await prove({ accountId, password: PASSWORD, code })).toBe(REACHED);
    expect(passwords.verified).toBe(before);
    identity.clock.advance(15 * MINUTE_MS);
    expect(await prove({ accountId, password: PASSWORD, code })).toBe('done');
  });
});

test.each(OPERATIONS.filter(([, prove]) => prove !== disable))(
  'to %s without a password needs a session of 10 minutes',
  async (_what, prove) => {
    const { accountId, session, code } = await guardLinked();
    const foreign = await signUpSomeone(instance);
    await identity.db.query('update account set password_hash = null where id = $1', [accountId]);
    const sessionId = await sessionIdOf(instance, session);
    const withSession = (id: string) => prove({ accountId, password: '', code: code(), sessionId: id });
    for (const id of ['', 'x', await sessionIdOf(instance, foreign.session)])
      expect(await withSession(id)).toBe('session_invalid');
    const openedAgo = (ms: number) =>
      identity.db.query('update session set created_at = $2 where id = $1', [
        sessionId,
        new Date(identity.clock.now().getTime() - ms),
      ]);
    await openedAgo(10 * MINUTE_MS);
    expect(await withSession(sessionId)).toBe('oidc_session_too_old');
    await openedAgo(10 * MINUTE_MS - 1);
    expect(await withSession(sessionId)).toBe('done');
  },
);

test('wrong passwords count for the account, whatever they are for', async () => {
  const { accountId, recoveryCode: code } = await withoutAttempts();
  const outcomes = [];
  for (let i = 0; i < 11; i += 1) {
    outcomes.push(await present([link, unlink, disable, remove, change][i % 5])({ accountId, password: 'a guess', code }));
  }
  expect(outcomes).toEqual([...Array(10).fill(expect.stringMatching(WRONG)), REACHED]);
});

test('right passwords do not count, and sign-in goes on over the limit', async () => {
  const { account } = await signUpSomeone(instance);
  for (let i = 0; i < 12; i += 1) expect(await link({ accountId: account.id, password: PASSWORD })).toBe('done');
  for (let i = 0; i < 10; i += 1) await link({ accountId: account.id, password: 'a guess' });
  expect(await link({ accountId: account.id, password: PASSWORD })).toBe(REACHED);
  expect(await outcomeOf(instance.accounts.signIn({ email: account.email, password: PASSWORD }))).toBe('done');
});

test('wrong passwords count as wrong codes too; over that limit only an unused recovery code has the password verified', async () => {
  const { accountId, code, wrongCode, recoveryCodes } = await guardSomeone(identity);
  const guesses = Array.from({ length: 12 }, (_, i) => disable({ accountId, password: `guess ${i}`, code: code() }));
  const outcomes = await Promise.all(guesses);
  expect(outcomes.filter((outcome) => outcome === 'owner_password_wrong')).toHaveLength(5);
  expect(outcomes.filter((outcome) => outcome === 'two_factor_attempts_reached')).toHaveLength(7);
  const before = passwords.verified;
  for (const text of [code(), wrongCode(), 'aaaa-aaaa-aaaa-aaaa', '']) {
    expect(await disable({ accountId, password: PASSWORD, code: text })).toBe('two_factor_attempts_reached');
  }
  expect(passwords.verified).toBe(before);
  expect(await disable({ accountId, password: PASSWORD, code: present(recoveryCodes[0]) })).toBe('done');
});

/** Calls that run a statement on the account while they verify its password. */
function whileVerifying(statement: string, accountId: string) {
  const real = createTestPasswords();
  const verify = async (stored: string | undefined, password: string) => {
    const matches = await real.verify(stored, password);
    await identity.db.query(statement, [accountId]);
    return matches;
  };
  return identity.connect({ passwords: { ...real, verify } });
}

test('a password that is changed while it is verified is wrong, does not count and uses up no code', async () => {
  const { accountId, code } = await guardSomeone(identity);
  const { twoFactor } = whileVerifying(`update account set password_hash = 'another' where id = $1`, accountId);
  const request = { accountId, password: PASSWORD, code: code() };
  expect(await outcomeOf(twoFactor.disableTwoFactor(request))).toBe('owner_password_wrong');
  const { rows } = await identity.db.query('select password_failures from account where id = $1', [accountId]);
  expect(rows).toEqual([{ password_failures: [] }]);
  expect(await outcomeOf(identity.twoFactor.verifyTwoFactorCode({ accountId, code: code() }))).toBe('done');
});

test('the session of an account that is deleted while its password is verified has ended', async () => {
  const { account } = await signUpSomeone(identity);
  const { accounts } = whileVerifying('delete from account where id = $1', account.id);
  expect(await outcomeOf(accounts.deleteAccount({ accountId: account.id, password: PASSWORD }))).toBe('session_invalid');
});

test('an account without a password is verified by its second factor alone', async () => {
  const { accountId, recoveryCodes, wrongCode } = await guardSomeone(identity);
  await identity.db.query('update account set password_hash = null where id = $1', [accountId]);
  expect(await disable({ accountId, password: '', code: wrongCode() })).toBe('two_factor_code_invalid');
  expect(await disable({ accountId, password: '', code: present(recoveryCodes[9]) })).toBe('done');
});
