import { describe, expect, test } from 'vitest';
import { createTestPasswords, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { type CallOptions, runCommand } from '../testing/operator.ts';
import { createSomeKey, keyCredential, PASSWORD, sessionCredential, signUpSomeone, someSignUp } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const identity = await openTestIdentity();

const OTHER = 'another password of theirs';
const call = (args: readonly string[], options?: CallOptions) => runCommand(identity, args, options);
const signIn = (email: string, password: string) => outcomeOf(identity.accounts.signIn({ email, password }));
const useSession = (token: string) => outcomeOf(identity.authentication.authenticate({ credential: sessionCredential(token) }));
const useKey = (text: string) => outcomeOf(identity.authentication.authenticate({ credential: keyCredential(text) }));
const create = ({ username, email }: { username: string; email: string }, ...more: string[]) => {
  return ['create', `--username=${username}`, `--email=${email}`, ...more];
};

describe('create', () => {
  test('creates an account that can sign in, while sign-up is closed', async () => {
    const someone = someSignUp();
    const created = await call(create(someone), { input: ` ${OTHER}\t\r\nmore\n`, env: { SIGN_UP: 'closed' } });
    expect(created.text).toBe(`Created the account ${someone.username} (${someone.email}), id ${created.account.id}.`);
    expect(JSON.stringify(created)).not.toContain(OTHER);
    expect(await signIn(someone.email, ` ${OTHER}\t`)).toBe('done');
  });

  test('generates a password and shows it once', async () => {
    const [one, two] = [await call(create(someSignUp(), '--generate')), await call(create(someSignUp(), '--generate'))];
    expect(one.password).toMatch(/^[2-9A-HJ-NP-Za-km-z]{20}$/);
    expect(one.text.split('\n')[1]).toBe(`Password: ${one.password}`);
    expect(one.password).not.toBe(two.password);
    expect(await signIn(one.account.email, one.password)).toBe('done');
  });

  test.each([
    ['an invalid username', { username: 'no spaces' }, OTHER, 'username_invalid'],
    ['an invalid email', { email: 'ada' }, OTHER, 'email_invalid'],
    ['a short password', {}, 'too short', 'password_invalid'],
    ['a password with a NUL', {}, 'a long \0 passphrase', 'password_invalid'],
    ['a password that is not UTF-8', {}, Buffer.from([...Buffer.from(OTHER), 0xff]), 'password_invalid'],
    ['a password without an end', {}, 'p'.repeat(100_000), 'password_invalid'],
    ['an empty line', {}, `\n${OTHER}\n`, 'password_missing'],
  ])('rejects %s', async (_what, part, input, reason) => {
    const someone = { ...someSignUp(), ...part };
    expect(await call(create(someone), { input })).toMatchObject({ reason, message: expect.stringMatching(/^The[^\n]+\.$/) });
    expect(await signIn(someone.email, OTHER)).toMatch(/^sign_in_/);
  });
});

describe('reset-password', () => {
  test('sets another password for an email, a username or an id in any case, and ends the sessions', async () => {
    const { account, session } = await signUpSomeone(identity);
    const bystander = await signUpSomeone(identity);
    for (const [i, name] of [account.id, account.username, account.email].entries()) {
      const { text, ...json } = await call(['reset-password', name.toUpperCase()], { input: `${OTHER}${i}` });
      expect(text).toBe(`Set another password for ${account.username} (${account.email}), ended 1 session and removed 0 links.`);
      expect(json).toMatchObject({ account: { id: account.id }, endedSessions: 1, removedLinks: 0 });
      expect(await signIn(account.email, PASSWORD)).toBe('sign_in_failed');
      expect(await signIn(account.email, `${OTHER}${i}`)).toBe('done');
    }
    expect(await useSession(session.token)).toBe('session_invalid');
    expect(await useSession(bystander.session.token)).toBe('done');
  });

  test('cancels a sign-in that verified the earlier password', async () => {
    const { account } = await signUpSomeone(identity);
    const real = createTestPasswords();
    const verify = async (stored: string | undefined, password: string) => {
      const matches = await real.verify(stored, password);
      await call(['reset-password', account.email], { input: OTHER });
      return matches;
    };
    const { accounts } = identity.connect({ passwords: { ...real, verify } });
    expect(await outcomeOf(accounts.signIn({ email: account.email, password: PASSWORD }))).toBe('sign_in_failed');
  });

  test('removes the links to issuers unless they are to stay, and leaves the second factor on', async () => {
    const [one, other] = [await guardSomeone(identity), await signUpSomeone(identity)];
    const link = ({ account }: Pick<typeof other, 'account'>, subject: string) =>
      identity.db.query('insert into oidc_link values ($1, $2, $3, now())', ['https://id.test', subject, account.id]);
    await Promise.all([link(one, 'a'), link(one, 'b'), link(other, 'c')]);
    const kept = await call(['reset-password', one.account.email, '--keep-links'], { input: OTHER });
    expect(kept).toMatchObject({ text: expect.stringMatching(/ and kept its links\.$/), removedLinks: 0 });
    const removed = await call(['reset-password', one.account.email], { input: OTHER });
    expect(removed).toMatchObject({ text: expect.stringMatching(/ and removed 2 links\.$/), removedLinks: 2 });
    expect((await identity.db.query('select subject from oidc_link')).rows).toEqual([{ subject: 'c' }]);
    expect(await outcomeOf(one.signIn(undefined, OTHER))).toBe('two_factor_required');
  });
});

describe('two-factor-off', () => {
  test('deletes the second factor and ends the sessions', async () => {
    const guarded = await guardSomeone(identity);
    const { account, session, accountId } = guarded;
    const whose = `Two-factor authentication of ${account.username} (${account.email})`;
    expect(await call(['two-factor-off', account.username])).toMatchObject({
      text: `${whose} is off now. Ended 1 session.`,
      account: { twoFactorEnabled: false },
      changed: true,
      endedSessions: 1,
    });
    expect(await useSession(session.token)).toBe('session_invalid');
    expect(await outcomeOf(guarded.signIn())).toBe('done');
    for (const table of ['two_factor', 'recovery_code']) {
      const { rowCount } = await identity.db.query(`select from ${table} where account_id = $1`, [accountId]);
      expect(rowCount, table).toBe(0);
    }
  });

  test('changes nothing where it is only set up', async () => {
    const { account, session } = await signUpSomeone(identity);
    await identity.twoFactor.setUpTwoFactor({ accountId: account.id });
    expect(await call(['two-factor-off', account.email])).toMatchObject({ changed: false, endedSessions: 0 });
    expect(await useSession(session.token)).toBe('done');
  });
});

test('sign-out ends every session of the account and no other', async () => {
  const [one, two] = [await signUpSomeone(identity), await signUpSomeone(identity)];
  await signIn(one.account.email, PASSWORD);
  const { text } = await call(['sign-out', one.account.email]);
  expect(text).toBe(`Ended 2 sessions of ${one.account.username} (${one.account.email}).`);
  expect(await useSession(one.session.token)).toBe('session_invalid');
  expect(await useSession(two.session.token)).toBe('done');
});

test('list shows every account once, page by page, and no password', async () => {
  for (let i = 0; i < 3; i += 1) await signUpSomeone(identity);
  const { rows } = await identity.db.query<{ id: string }>('select id from account order by id');
  const found: string[] = [];
  let next: string[] = [];
  do {
    const page = await call(['list', '--limit', '2', ...next]);
    expect(page.accounts.length).toBeLessThanOrEqual(2);
    expect(page.text).toContain(page.accounts[0].email);
    if (page.next) expect(page.text).toContain(`There are more: --after ${page.next}`);
    expect(JSON.stringify(page)).not.toMatch(/argon2|password/i);
    found.push(...page.accounts.map(({ id }: { id: string }) => id));
    next = page.next ? ['--after', page.next] : [];
  } while (next.length > 0);
  expect(found).toEqual(rows.map(({ id }) => id));
});

describe('revoke-key', () => {
  test.each(['publicId', 'id'] as const)('revokes a key named by its %s, once', async (property) => {
    const { apiKey, plaintextKey, accountId } = await createSomeKey(identity, { name: 'Moves \u001b[2J text' });
    const revoke = () => call(['revoke-key', accountId, apiKey[property]]);
    const revoked = await revoke();
    expect(revoked.text).toContain(`${apiKey.publicId} (Moves [2J text)`);
    expect(revoked).toMatchObject({ changed: true, key: { id: apiKey.id } });
    expect(await useKey(plaintextKey)).toBe('api_key_revoked');
    expect(await revoke()).toMatchObject({ changed: false, key: { revokedAt: revoked.key.revokedAt } });
  });

  test('does not find a key of another account', async () => {
    const { apiKey, plaintextKey } = await createSomeKey(identity);
    const { account } = await signUpSomeone(identity);
    for (const key of [apiKey.publicId, apiKey.id, 'nothing']) {
      expect(await call(['revoke-key', account.email, key])).toMatchObject({ reason: 'api_key_not_found' });
    }
    expect(await useKey(plaintextKey)).toBe('done');
  });

  test('waits for caches to expire where Redis does not answer or is not known, and not where nothing runs', async () => {
    const { apiKey, accountId } = await createSomeKey(identity);
    const revoke = async (options: CallOptions) => {
      const startedAt = performance.now();
      const { hints } = await call(['revoke-key', accountId, apiKey.id], options);
      return `${hints}${performance.now() - startedAt > 2_900 ? 'waited' : ''}`;
    };
    const [down, unknown, none] = await Promise.all([
      revoke({ env: { REDIS_URL: 'redis://localhost:1' } }),
      revoke({ listeners: 'unknown' }),
      revoke({ listeners: 'none' }),
    ]);
    expect(down).toMatch(/^Redis does not answer: waiting 3 s.+\nwaited$/);
    expect(unknown).toMatch(/^No Redis is known.+: waiting 3 s.+\nwaited$/);
    expect(none).toBe('');
  });
});

test.each(['reset-password', 'two-factor-off', 'sign-out'])('%s rejects an unknown account', async (name) => {
  for (const unknown of ['ada', 'ada@example.test', '01900000-0000-7000-8000-00000000dead', 'no name']) {
    const error = { reason: 'account_not_found', message: `There is no account "${unknown}".` };
    expect(await call([name, unknown], { input: OTHER })).toMatchObject(error);
  }
});
