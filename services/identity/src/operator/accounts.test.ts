import { randomUUID } from 'node:crypto';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPasswords } from '../account/password.ts';
import { accountsCalls } from '../testing/accounts-call.ts';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone, someSignUp } from '../testing/sample.fixture.ts';
import { guardSomeone } from '../testing/two-factor.fixture.ts';

let database: TestDatabase;
let identity: TestIdentity;
let call: ReturnType<typeof accountsCalls>;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const servers = { databaseUrl: database.url, redisUrl: (await testRedis()).url };
  identity = await startTestIdentity(servers);
  call = accountsCalls(servers);
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

const OTHER = 'another password of theirs';
const signIn = (email: string, password: string) => outcomeOf(identity.accounts.signIn({ email, password }));
const use = (token: string) => identity.authentication.authenticate({ credential: sessionCredential(token) });
const create = ({ username, email }: { username: string; email: string }, ...more: string[]) => {
  return ['create', '--username', username, '--email', email, ...more];
};

describe('create', () => {
  test('makes an account that can sign in, while sign-up is closed', async () => {
    const someone = someSignUp();
    const { data, text } = await call(create(someone), { input: `${OTHER}\n`, env: { SIGN_UP: 'closed' } });
    expect(data.account).toMatchObject({ username: someone.username, email: someone.email, twoFactorEnabled: false });
    expect(text).toBe(`Made the account ${someone.username} (${someone.email}), id ${data.account.id}.`);
    expect(await signIn(someone.email, OTHER)).toBe('done');
    expect(JSON.stringify(data)).not.toContain(OTHER);
  });

  test('makes a password and shows it once, another each time', async () => {
    const [one, two] = [await call(create(someSignUp(), '--generate')), await call(create(someSignUp(), '--generate'))];
    expect(one.data.password).toMatch(/^[2-9A-HJ-NP-Za-km-z]{20}$/);
    expect(one.text?.split('\n')[1]).toBe(`Password: ${one.data.password}`);
    expect(one.data.password).not.toBe(two.data.password);
    expect(await signIn(one.data.account.email, one.data.password)).toBe('done');
  });

  test.each([
    ['a username that is none', { username: 'no spaces' }, OTHER, 'username_invalid'],
    ['an email that is none', { email: 'nobody' }, OTHER, 'email_invalid'],
    ['a password of 9 characters', {}, 'too short', 'password_invalid'],
    ['a password of 129 characters', {}, 'p'.repeat(129), 'password_invalid'],
    [
      'a password with a NUL',
      {},
      'a long \0 passphrase',
      'password_invalid',
      'The password must not have a NUL character in it.',
    ],
    ['a password that is no UTF-8', {}, Buffer.from([...Buffer.from(OTHER), 0xff]), 'password_invalid'],
    ['a password without an end', {}, 'p'.repeat(100_000), 'password_invalid'],
    ['no password', {}, '', 'password_missing'],
    ['an empty line before a password', {}, `\n${OTHER}\n`, 'password_missing'],
  ])('refuses %s with a sentence, and makes nothing', async (_what, part, input, refusal, sentence?: string) => {
    const someone = { ...someSignUp(), ...part };
    const called = await call(create(someone), { input });
    expect(called).toMatchObject({ refusal, message: sentence ?? expect.stringMatching(/^The[^\n]+\.$/) });
    const { rows } = await identity.db.query('select from account where username = $1 or email = $2', [
      someone.username,
      someone.email,
    ]);
    expect(rows).toEqual([]);
  });

  test('takes the first line alone, in either form of line break, as every character of it', async () => {
    for (const [input, password] of [
      [`${OTHER}\r\nmore\n`, OTHER],
      [` ${OTHER}\t`, ` ${OTHER}\t`],
    ] as const) {
      const someone = someSignUp();
      await call(create(someone), { input });
      expect(await signIn(someone.email, password)).toBe('done');
    }
  });

  test('refuses a username and an email that are taken in another case', async () => {
    const { account } = await signUpSomeone(identity);
    for (const part of [{ username: account.username.toUpperCase() }, { email: account.email.toUpperCase() }]) {
      expect(await call(create({ ...someSignUp(), ...part }, '--generate'))).toMatchObject({ refusal: 'account_exists' });
    }
  });

  test.each(['-', '--', '--json', '--help', 'lk_mgmt_', 'lk_sock_', 'lk_http_'])(
    'takes a username that begins with %s, and so do the other commands',
    async (start) => {
      const { email } = someSignUp();
      const username = `${start}${randomUUID().replaceAll('-', '')}`.slice(0, 32);
      const made = await call(['create', `--username=${username}`, `--email=-${email}`, '--generate']);
      expect(made.data.account).toMatchObject({ username, email: `-${email}` });
      for (const name of [username, `-${email}`]) {
        const reset = await call(['reset-password', '--generate', '--', name]);
        expect(reset.text).toMatch(new RegExp(`^Set another password for ${username} `));
      }
    },
  );

  test('makes one account of many at once for one name, sign-ups among them', async () => {
    const { username } = someSignUp();
    const attempts = Array.from({ length: 8 }, async (_, i) => {
      if (i % 2 === 0) return (await call(create({ ...someSignUp(), username }, '--generate'))).refusal ?? 'done';
      return outcomeOf(identity.accounts.signUp({ ...someSignUp(), username }));
    });
    expect((await Promise.all(attempts)).sort()).toEqual([...Array(7).fill('account_exists'), 'done']);
  });
});

describe('reset-password', () => {
  test.each([
    ['email', (account: { email: string }) => account.email.toUpperCase()],
    ['username', (account: { username: string }) => account.username.toUpperCase()],
    ['id', (account: { id: string }) => account.id.toUpperCase()],
  ])('sets another password for the account of that %s, in any case, and ends its sessions', async (_what, nameOf) => {
    const { account, session } = await signUpSomeone(identity);
    const bystander = await signUpSomeone(identity);
    await identity.accounts.signIn({ email: account.email, password: PASSWORD });
    const { epochKey } = await use(session.token);
    const { text, data } = await call(['reset-password', nameOf(account)], { input: OTHER });
    expect(text).toBe(`Set another password for ${account.username} (${account.email}), ended 2 sessions and removed 0 links.`);
    expect(data).toMatchObject({ account: { id: account.id }, endedSessions: 2, removedLinks: 0 });
    expect(await identity.redis.get(epochKey)).toBeNull();
    expect(await outcomeOf(use(session.token))).toBe('session_invalid');
    expect(await outcomeOf(use(bystander.session.token))).toBe('done');
    expect(await signIn(account.email, PASSWORD)).toBe('sign_in_failed');
    expect(await signIn(account.email, OTHER)).toBe('done');
    expect(await signIn(bystander.account.email, PASSWORD)).toBe('done');
  });

  test('lets no sign-in through that had verified the earlier password before it', async () => {
    const { account } = await signUpSomeone(identity);
    const real = createPasswords({ atOnce: 2, waitingMax: 10 });
    const verify = async (stored: string | undefined, password: string) => {
      const matches = await real.verify(stored, password);
      expect(matches).toBe(true);
      await call(['reset-password', account.email], { input: OTHER });
      return matches;
    };
    const { accounts } = await identity.connect({ passwords: { ...real, verify } });
    expect(await outcomeOf(accounts.signIn({ email: account.email, password: PASSWORD }))).toBe('sign_in_failed');
    const { rowCount } = await identity.db.query('select from session where account_id = $1', [account.id]);
    expect(rowCount).toBe(0);
  });

  test('makes a password', async () => {
    const { account } = await signUpSomeone(identity);
    const { data } = await call(['reset-password', account.email, '--generate']);
    expect(await signIn(account.email, data.password)).toBe('done');
  });

  test('changes nothing where the password is refused', async () => {
    const { account, session } = await signUpSomeone(identity);
    expect(await call(['reset-password', account.email], { input: 'short' })).toMatchObject({ refusal: 'password_invalid' });
    expect(await signIn(account.email, PASSWORD)).toBe('done');
    expect(await outcomeOf(use(session.token))).toBe('done');
  });

  test('removes the links of the account to issuers, unless they are to be kept', async () => {
    const [one, other] = [await signUpSomeone(identity), await signUpSomeone(identity)];
    const link = ({ account }: typeof one, subject: string) =>
      identity.db.query('insert into oidc_link values ($1, $2, $3, now())', ['https://id.test', subject, account.id]);
    await Promise.all([link(one, 'a'), link(one, 'b'), link(other, 'c')]);
    const kept = await call(['reset-password', one.account.email, '--keep-links'], { input: OTHER });
    expect(kept.text).toMatch(/ended 1 session and kept its links\.$/);
    expect(kept.data).toMatchObject({ endedSessions: 1, removedLinks: 0 });
    const removed = await call(['reset-password', one.account.email], { input: OTHER });
    expect(removed.text).toMatch(/ended 0 sessions and removed 2 links\.$/);
    expect(removed.data).toMatchObject({ removedLinks: 2 });
    expect((await identity.db.query('select subject from oidc_link')).rows).toEqual([{ subject: 'c' }]);
  });

  test('leaves the second factor on', async () => {
    const guarded = await guardSomeone(identity);
    await call(['reset-password', guarded.account.email], { input: OTHER });
    expect(await outcomeOf(guarded.signIn(undefined, OTHER))).toBe('two_factor_required');
  });
});

describe('two-factor-off', () => {
  test('lets the owner in with the password alone, forgets secret and recovery codes, and ends the sessions', async () => {
    const guarded = await guardSomeone(identity);
    const { account, session } = guarded;
    const { text, data } = await call(['two-factor-off', account.username]);
    expect(text).toBe(`Turned two-factor authentication of ${account.username} (${account.email}) off and ended 1 session.`);
    expect(data).toMatchObject({ account: { twoFactorEnabled: false }, changed: true, endedSessions: 1 });
    expect(await outcomeOf(use(session.token))).toBe('session_invalid');
    expect(await outcomeOf(guarded.signIn())).toBe('done');
    for (const stored of ['two_factor', 'recovery_code']) {
      const { rowCount } = await identity.db.query(`select from ${stored} where account_id = $1`, [account.id]);
      expect(rowCount, stored).toBe(0);
    }
  });

  test('changes nothing where there is none, also where one is only set up', async () => {
    const { account, session } = await signUpSomeone(identity);
    await identity.twoFactor.setUpTwoFactor({ accountId: account.id });
    expect(await call(['two-factor-off', account.email])).toMatchObject({
      text: `Two-factor authentication of ${account.username} (${account.email}) was off already.`,
      data: { changed: false, endedSessions: 0 },
    });
    expect(await outcomeOf(use(session.token))).toBe('done');
    const { rowCount } = await identity.db.query('select from two_factor where account_id = $1', [account.id]);
    expect(rowCount).toBe(1);
  });
});

describe('sign-out', () => {
  test('ends every session of the account and no other', async () => {
    const [one, two] = [await signUpSomeone(identity), await signUpSomeone(identity)];
    const again = present((await identity.accounts.signIn({ email: one.account.email, password: PASSWORD })).session);
    const { text } = await call(['sign-out', one.account.email]);
    expect(text).toBe(`Ended 2 sessions of ${one.account.username} (${one.account.email}).`);
    for (const { token } of [one.session, again]) expect(await outcomeOf(use(token))).toBe('session_invalid');
    expect(await outcomeOf(use(two.session.token))).toBe('done');
  });
});

describe('list', () => {
  test('shows every account once, page by page', async () => {
    for (let i = 0; i < 3; i += 1) await signUpSomeone(identity);
    const { rows } = await identity.db.query<{ id: string }>('select id from account order by id');
    const found: string[] = [];
    let next: string[] = [];
    do {
      const { data, text } = await call(['list', '--limit', '2', ...next]);
      expect(data.accounts.length).toBeLessThanOrEqual(2);
      expect(text).toContain(data.accounts[0].email);
      if (data.next) expect(text).toContain(`There are more: --after ${data.next}`);
      found.push(...data.accounts.map(({ id }: { id: string }) => id));
      next = data.next ? ['--after', data.next] : [];
    } while (next.length > 0);
    expect(found).toEqual(rows.map(({ id }) => id));
  });

  test.each([
    ['--limit=0', '--limit must be a whole number from 1 to 1000.'],
    ['--limit=1001', '--limit must be a whole number from 1 to 1000.'],
    ['--limit=-1', '--limit must be a whole number from 1 to 1000.'],
    ['--after=ada', '--after must be the id of an account.'],
  ])('takes no %s', async (option, sentence) => {
    await expect(call(['list', option])).rejects.toThrow(sentence);
  });

  test('shows no password, not even its hash', async () => {
    const { text, data } = await call(['list', '--limit', '1000']);
    expect(text + JSON.stringify(data)).not.toMatch(/argon2|password/i);
  });
});

test.each(['reset-password', 'two-factor-off', 'sign-out', 'list-keys'])(
  '%s refuses an account that there is not',
  async (name) => {
    for (const unknown of ['nobody', 'nobody@example.test', '01900000-0000-7000-8000-00000000dead', 'no name', '']) {
      const called = await call([name, unknown], { input: OTHER });
      expect(called).toMatchObject({ refusal: 'account_not_found', message: `There is no account "${unknown}".` });
    }
  },
);
