import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';
import { codeAt, guardSomeone, STEP_MS, sessionIdOf } from '../testing/two-factor.fixture.ts';

const identity = await openTestIdentity();

const NOBODY = '01a1fa3f-b3c3-743f-b08f-2741f24621e5';
const now = (secret: string) => codeAt(secret, identity.clock.now());
const isEnabled = async (accountId: string) =>
  present((await identity.accounts.getAccount({ accountId })).account).twoFactorEnabled;
const use = (token: string) => identity.authentication.authenticate({ credential: sessionCredential(token) });

test('setting up changes nothing, and makes another secret each time', async () => {
  const { account } = await signUpSomeone(identity);
  const [first, second] = [
    await identity.twoFactor.setUpTwoFactor({ accountId: account.id }),
    await identity.twoFactor.setUpTwoFactor({ accountId: account.id }),
  ];
  expect(second.secret).not.toBe(first.secret);
  expect(second.otpauthUrl).toContain(second.secret);
  expect(second.otpauthUrl).toContain(encodeURIComponent(account.email));
  expect(await isEnabled(account.id)).toBe(false);
  expect(await outcomeOf(identity.accounts.signIn({ email: account.email, password: PASSWORD }))).toBe('done');
  const enable = (code: string) => outcomeOf(identity.twoFactor.enableTwoFactor({ accountId: account.id, code }));
  expect(await enable(now(first.secret))).toBe('two_factor_code_invalid');
  expect(await enable(now(second.secret))).toBe('done');
});

test('enabling it needs a code of the secret, which is not taken again', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  const notSetUp = await refusalOf(identity.twoFactor.enableTwoFactor({ accountId, code: '123456' }));
  expect(notSetUp).toMatchObject({ reason: 'two_factor_not_set_up', kind: 'invalid', code: 'bad_request' });
  const { secret } = await identity.twoFactor.setUpTwoFactor({ accountId });
  for (const code of ['', 'abcdef', codeAt(secret, new Date(0))]) {
    const refusal = await refusalOf(identity.twoFactor.enableTwoFactor({ accountId, code }));
    expect(refusal).toMatchObject({ reason: 'two_factor_code_invalid', kind: 'invalid', code: 'bad_request' });
  }
  expect(await isEnabled(accountId)).toBe(false);
  const code = now(secret);
  const { recoveryCodes } = await identity.twoFactor.enableTwoFactor({ accountId, code });
  expect(new Set(recoveryCodes).size).toBe(10);
  expect(await isEnabled(accountId)).toBe(true);
  expect(await outcomeOf(identity.accounts.signIn({ email: account.email, password: PASSWORD, code }))).toBe(
    'two_factor_code_invalid',
  );
});

test('once enabled it can neither be set up nor enabled again', async () => {
  const { accountId, code } = await guardSomeone(identity);
  const refusals = [
    await refusalOf(identity.twoFactor.setUpTwoFactor({ accountId })),
    await refusalOf(identity.twoFactor.enableTwoFactor({ accountId, code: code() })),
  ];
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ reason: 'two_factor_already_enabled', kind: 'invalid', code: 'bad_request' });
  }
  expect(await outcomeOf(identity.twoFactor.verifyTwoFactorCode({ accountId, code: code() }))).toBe('done');
});

test('of enablings at once with one code, one is done', async () => {
  const { account } = await signUpSomeone(identity);
  const { secret } = await identity.twoFactor.setUpTwoFactor({ accountId: account.id });
  const enable = () => outcomeOf(identity.twoFactor.enableTwoFactor({ accountId: account.id, code: now(secret) }));
  const outcomes = await Promise.all(Array.from({ length: 8 }, enable));
  expect(outcomes.sort()).toEqual(['done', ...Array(7).fill('two_factor_already_enabled')]);
  const { rows } = await identity.db.query('select from recovery_code where account_id = $1', [account.id]);
  expect(rows).toHaveLength(10);
});

test('disabling it needs password and code, and leaves nothing of it', async () => {
  const { accountId, code, signIn, recoveryCodes } = await guardSomeone(identity);
  const disable = (password: string, given: string) =>
    refusalOf(identity.twoFactor.disableTwoFactor({ accountId, password, code: given }));
  const wrongPassword = { reason: 'two_factor_password_wrong', kind: 'invalid', code: 'bad_request' };
  expect(await disable('wrong password', code())).toMatchObject(wrongPassword);
  expect(await disable('', code())).toMatchObject({ ...wrongPassword, reason: 'password_missing' });
  expect(await disable(PASSWORD, '')).toMatchObject({ reason: 'two_factor_code_invalid', kind: 'invalid' });
  // A wrong password left the code unused.
  await identity.twoFactor.disableTwoFactor({ accountId, password: PASSWORD, code: code() });
  expect(await isEnabled(accountId)).toBe(false);
  expect(await outcomeOf(signIn())).toBe('done');
  expect(await outcomeOf(signIn('000000'))).toBe('done');
  for (const table of ['two_factor', 'recovery_code']) {
    expect((await identity.db.query(`select from ${table} where account_id = $1`, [accountId])).rows).toHaveLength(0);
  }
  expect(await disable(PASSWORD, recoveryCodes[0] ?? '')).toMatchObject({
    reason: 'two_factor_not_enabled',
    kind: 'invalid',
    code: 'bad_request',
  });
});

test('a session that has ended, or is another account’s, enables nothing, and a code of it counts for nothing', async () => {
  const { account, session } = await signUpSomeone(identity);
  const other = await signUpSomeone(identity);
  const accountId = account.id;
  const [sessionId, stranger] = [await sessionIdOf(identity, session), await sessionIdOf(identity, other.session)];
  const { secret } = await identity.twoFactor.setUpTwoFactor({ accountId });
  await identity.accounts.signOutEverywhere({ accountId });
  const enable = (asking: string) =>
    outcomeOf(identity.twoFactor.enableTwoFactor({ accountId, sessionId: asking, code: now(secret) }));
  for (const asking of [sessionId, stranger, 'not-a-uuid']) expect(await enable(asking)).toBe('session_invalid');
  expect(await isEnabled(accountId)).toBe(false);
  const again = await identity.accounts.signIn({ email: account.email, password: PASSWORD });
  expect(await enable(await sessionIdOf(identity, present(again.session)))).toBe('done');
});

test('enabling and disabling end the other sessions on the next request, and their epochs', async () => {
  const { account, session } = await signUpSomeone(identity);
  const accountId = account.id;
  const sessionId = await sessionIdOf(identity, session);
  const bystander = await signUpSomeone(identity);
  const { secret } = await identity.twoFactor.setUpTwoFactor({ accountId });
  const expectOthersToEnd = async (change: () => Promise<unknown>, codes: readonly string[]) => {
    const others = [];
    for (const code of codes) {
      const opened = await identity.accounts.signIn({ email: account.email, password: PASSWORD, code });
      others.push(present(opened.session).token);
    }
    const epochs = await Promise.all(others.map(async (token) => (await use(token)).epochKey));
    await change();
    for (const key of epochs) expect(await identity.redis.get(key)).toBeNull();
    for (const token of others) expect(await outcomeOf(use(token))).toBe('session_invalid');
    for (const token of [session.token, bystander.session.token]) expect(await outcomeOf(use(token))).toBe('done');
  };
  let recoveryCodes: string[] = [];
  const enable = async () => {
    recoveryCodes = (await identity.twoFactor.enableTwoFactor({ accountId, sessionId, code: now(secret) })).recoveryCodes;
  };
  await expectOthersToEnd(enable, ['', '']);
  identity.clock.advance(STEP_MS);
  const disable = () => identity.twoFactor.disableTwoFactor({ accountId, sessionId, password: PASSWORD, code: now(secret) });
  await expectOthersToEnd(disable, recoveryCodes.slice(0, 2));
});

test('a secret is encrypted for its account, and recovery codes are hashes', async () => {
  const [mine, other] = [await guardSomeone(identity), await guardSomeone(identity)];
  const { rows } = await identity.db.query(
    `select row_to_json(t)::text || row_to_json(r)::text as text from two_factor t join recovery_code r using (account_id)`,
  );
  const stored = rows.map(({ text }) => text).join();
  for (const secret of [mine.secret, ...mine.recoveryCodes, ...mine.recoveryCodes.map((code) => code.replaceAll('-', ''))]) {
    expect(stored.toLowerCase()).not.toContain(secret.toLowerCase());
    expect(stored).not.toContain(Buffer.from(secret).toString('hex'));
  }
  await identity.db.query(
    'update two_factor set secret_sealed = (select secret_sealed from two_factor where account_id = $1) where account_id = $2',
    [mine.accountId, other.accountId],
  );
  const { twoFactor } = identity;
  await expect(twoFactor.verifyTwoFactorCode({ accountId: other.accountId, code: mine.code() })).rejects.toMatchObject({
    code: 13,
  });
  await twoFactor.verifyTwoFactorCode({ accountId: mine.accountId, code: mine.code() });
});

test('an account that there is not has no second factor', async () => {
  const { twoFactor } = identity;
  for (const accountId of [NOBODY, 'not-a-uuid', '']) {
    const outcomes = [
      await outcomeOf(twoFactor.setUpTwoFactor({ accountId })),
      await outcomeOf(twoFactor.enableTwoFactor({ accountId, code: '123456' })),
      await outcomeOf(twoFactor.disableTwoFactor({ accountId, password: PASSWORD, code: '123456' })),
    ];
    expect(outcomes).toEqual(['account_not_found', 'two_factor_not_set_up', 'two_factor_not_enabled']);
    expect((await twoFactor.verifyTwoFactorCode({ accountId, code: '123456' })).twoFactorEnabled).toBe(false);
  }
});
