import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { auditReader, FOR_SOMEBODY, type ShownEntry, SOMEBODY } from '@latchkey/audit/testing/audit-reader';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { accountsCalls } from '../testing/accounts-call.ts';
import {
  migrateIdentity,
  outcomeOf,
  startTestIdentity,
  type TestIdentity,
  type TestInstance,
} from '../testing/identity.fixture.ts';
import { REDIRECT_URI, startTestIssuer, type TestIssuer } from '../testing/issuer.fixture.ts';
import { comeBack, finishAt, linkAt, signInAt } from '../testing/oidc-flow.fixture.ts';
import { createSomeKey, OPEN_KEY, PASSWORD, signUpSomeone, someAccountId, someSignUp } from '../testing/sample.fixture.ts';
import { guardSomeone, sessionIdOf } from '../testing/two-factor.fixture.ts';

let database: TestDatabase;
let servers: { databaseUrl: string; redisUrl: string };
let identity: TestIdentity;
let issuer: TestIssuer;
/** Reached by an issuer as well. */
let instance: TestInstance;
let entriesOf: (accountId: string) => Promise<ShownEntry[]>;
beforeAll(async () => {
  issuer = await startTestIssuer();
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  servers = { databaseUrl: database.url, redisUrl: (await testRedis()).url };
  identity = await startTestIdentity(servers);
  instance = await identity.connect({ env: issuer.env() });
  entriesOf = auditReader(identity.service.routes);
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
  await issuer.stop();
});
beforeEach(() => issuer.reset());

/** Somebody without a credential, as the gateway names those. */
const FOR_ANYBODY = { headers: { 'x-latchkey-actor': 'anonymous - 203.0.113.9', 'x-request-id': 'request-of-anybody' } };

const told = (entries: readonly ShownEntry[]) => entries.map(({ action, changes }) => [action, changes]);

/** What was written after some entries. */
const since = async (accountId: string, before: readonly ShownEntry[]) => (await entriesOf(accountId)).slice(before.length);

describe('of sessions, the audit log says', () => {
  it('who signed up, in, and out, each as the session that they did it in', async () => {
    const someone = someSignUp();
    const first = await identity.accounts.signUp(someone, FOR_ANYBODY);
    const accountId = first.account?.id ?? '';
    const again = { ...someone, previousSessionToken: first.session?.token ?? '' };
    const ids = [await sessionIdOf(identity, first.session as never)];
    const second = await identity.accounts.signIn(again, FOR_ANYBODY);
    ids.push(await sessionIdOf(identity, second.session as never));
    await identity.accounts.signOut({ accountId, sessionId: ids[1] ?? '' }, FOR_SOMEBODY);
    await identity.accounts.signIn(someone, FOR_ANYBODY);
    await identity.accounts.signOutEverywhere({ accountId }, FOR_SOMEBODY);
    await identity.accounts.signOutEverywhere({ accountId }, FOR_SOMEBODY);
    const entries = await entriesOf(accountId);
    expect(told(entries)).toEqual([
      ['account.created', { username: someone.username, by: 'sign_up' }],
      ['account.signed_in', { by: 'password' }],
      ['account.signed_out', { because: 'signed_in' }],
      ['account.signed_out', {}],
      ['account.signed_in', { by: 'password' }],
      ['account.signed_out_everywhere', { sessions: 1 }],
    ]);
    const by = entries.map(({ actor, credentialId }) => `${actor} ${credentialId}`);
    expect(by.slice(0, 4)).toEqual([ids[0], ids[1], ids[0], SOMEBODY.credentialId].map((id) => `session ${id}`));
    expect(entries[0]).toMatchObject({
      address: '203.0.113.9',
      requestId: 'request-of-anybody',
      subject: `account ${accountId}`,
    });
    expect(JSON.stringify(entries)).not.toContain(someone.email);
  });

  it('nothing of a session that had ended', async () => {
    const accountId = await someAccountId(identity);
    const before = await entriesOf(accountId);
    await identity.accounts.signOut({ accountId, sessionId: randomUUID() }, FOR_SOMEBODY);
    expect(await since(accountId, before)).toEqual([]);
  });

  it('what failed, as far as an account is concerned, and by no more than 20 entries an hour', async () => {
    const own = await identity.connect();
    const { account } = await signUpSomeone(identity);
    const guarded = await guardSomeone(identity);
    const [before, guardedBefore] = [await entriesOf(account.id), await entriesOf(guarded.accountId)];
    const signIn = (email: string, password: string, code?: string) =>
      own.accounts.signIn({ email, password, ...(code !== undefined && { code }) }, FOR_ANYBODY).catch(() => undefined);
    await signIn('nobody@example.test', 'not the password');
    await signIn(account.email, 'not the password');
    // It does not wait for them to be written, but what stops does.
    expect(await since(account.id, before)).toEqual([]);
    await Promise.all(Array.from({ length: 24 }, () => signIn(account.email, 'not the password')));
    await signIn(guarded.account.email, PASSWORD);
    for (let i = 0; i < 6; i += 1) await signIn(guarded.account.email, PASSWORD, guarded.wrongCode());
    await own.service.stop();
    const failed = await since(account.id, before);
    expect(failed).toHaveLength(20);
    for (const entry of failed) {
      const expected = { action: 'account.sign_in_failed', actor: 'anonymous', address: '203.0.113.9' };
      expect(entry).toMatchObject({ ...expected, changes: { reason: 'wrong_password' } });
    }
    const reasons = (await since(guarded.accountId, guardedBefore)).map(({ changes }) => changes.reason);
    expect(reasons).toEqual([...Array(5).fill('wrong_code'), 'too_many_codes']);
    // Another process counts what this one has written.
    const another = await identity.connect();
    await another.accounts.signIn({ email: account.email, password: 'not the password' }).catch(() => undefined);
    await another.service.stop();
    expect(await since(account.id, before)).toHaveLength(20);
  });

  it('that somebody has the password and guesses codes, however many passwords were guessed just before', async () => {
    const guarded = await guardSomeone(identity);
    const own = await identity.connect();
    const before = await entriesOf(guarded.accountId);
    const { email } = guarded.account;
    const signIn = (password: string, code?: string) =>
      own.accounts.signIn({ email, password, ...(code !== undefined && { code }) }, FOR_ANYBODY).catch(() => undefined);
    for (let i = 0; i < 24; i += 1) await signIn('not the password');
    await signIn(PASSWORD, guarded.wrongCode());
    await own.service.stop();
    // Also where what was guessed has long been written.
    const another = await identity.connect();
    await another.accounts.signIn({ email, password: PASSWORD, code: guarded.wrongCode() }).catch(() => undefined);
    await another.service.stop();
    const reasons = (await since(guarded.accountId, before)).map(({ changes }) => changes.reason);
    expect(reasons.toSorted()).toEqual([...Array(2).fill('wrong_code'), ...Array(20).fill('wrong_password')]);
  });
});

describe('of the second factor, the audit log says', () => {
  it('that it was switched on and off, and that a recovery code was used', async () => {
    const { account, session } = await signUpSomeone(identity);
    const guarded = await guardSomeone(identity);
    expect(told(await entriesOf(guarded.accountId)).at(-1)).toEqual(['account.two_factor_enabled', { endedSessions: 0 }]);
    const before = await entriesOf(guarded.accountId);
    const [spent = '', other = '', last = ''] = guarded.recoveryCodes;
    await guarded.signIn(spent);
    await identity.twoFactor.verifyTwoFactorCode({ ...guarded, code: other }, FOR_SOMEBODY);
    await identity.twoFactor.verifyTwoFactorCode({ ...guarded, code: guarded.code() }, FOR_SOMEBODY);
    await expect(identity.twoFactor.verifyTwoFactorCode({ ...guarded, code: other }, FOR_SOMEBODY)).rejects.toThrow();
    await identity.twoFactor.disableTwoFactor({ ...guarded, password: PASSWORD, code: last }, FOR_SOMEBODY);
    const entries = await since(guarded.accountId, before);
    expect(entries.map(({ action }) => action)).toEqual([
      'account.recovery_code_used',
      'account.signed_in',
      'account.recovery_code_used',
      'account.recovery_code_used',
      'account.two_factor_disabled',
    ]);
    // The session that the sign-in opened.
    expect(entries.at(-1)).toMatchObject({ actor: 'session', ...SOMEBODY, changes: { endedSessions: 1 } });
    const asking = { accountId: account.id, sessionId: await sessionIdOf(identity, session) };
    await identity.twoFactor.setUpTwoFactor(asking, FOR_SOMEBODY);
    await expect(identity.twoFactor.enableTwoFactor({ ...asking, code: 'x' }, FOR_SOMEBODY)).rejects.toThrow();
    expect((await entriesOf(account.id)).map(({ action }) => action)).toEqual(['account.created']);
  });
});

describe('of OpenID Connect, the audit log says', () => {
  it('who signed up and in by it, and what was linked and unlinked', async () => {
    issuer.claims = { sub: randomUUID(), preferred_username: 'ada', email: `${randomUUID()}@example.test`, email_verified: true };
    const created = await signInAt(instance, issuer);
    await signInAt(instance, issuer);
    const accountId = created.account?.id ?? '';
    expect(told(await entriesOf(accountId))).toEqual([
      ['account.created', { username: created.account?.username, by: 'oidc', issuer: issuer.url }],
      ['account.signed_in', { by: 'oidc', issuer: issuer.url }],
    ]);
    const { account, session } = await signUpSomeone(instance);
    const before = await entriesOf(account.id);
    const subject = randomUUID();
    issuer.claims = { sub: subject };
    for (let i = 0; i < 2; i += 1) await linkAt(instance, issuer, { accountId: account.id, token: session.token });
    await comeBack(instance, issuer, { linkAccountId: account.id });
    const unlinking = { accountId: account.id, issuer: issuer.url, password: PASSWORD };
    await instance.oidc.unlinkOidc(unlinking, FOR_SOMEBODY);
    const entries = await since(account.id, before);
    expect(told(entries)).toEqual([
      ['account.oidc_linked', { issuer: issuer.url, subject }],
      ['account.oidc_unlinked', { issuer: issuer.url, subjects: [subject], endedSessions: 1 }],
    ]);
    expect(entries[1]).toMatchObject({ actor: 'session', ...SOMEBODY });
  });

  it('who signed in by it with a code, and which codes were wrong', async () => {
    const own = await identity.connect({ env: issuer.env() });
    const guarded = await guardSomeone(identity);
    issuer.claims = { sub: randomUUID() };
    await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [
      issuer.url,
      issuer.claims.sub,
      guarded.accountId,
    ]);
    const before = await entriesOf(guarded.accountId);
    const { outcome } = await finishAt(own, issuer);
    if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
    const { pending } = outcome.value;
    await expect(own.oidc.completeOidc({ pending, code: guarded.wrongCode() }, FOR_ANYBODY)).rejects.toThrow();
    expect(await since(guarded.accountId, before)).toEqual([]);
    const { signedIn } = await own.oidc.completeOidc({ pending, code: guarded.recoveryCodes[0] ?? '' }, FOR_ANYBODY);
    // It is good for one session: what is shown for another leaves nothing behind.
    await expect(own.oidc.completeOidc({ pending, code: guarded.recoveryCodes[1] ?? '' }, FOR_ANYBODY)).rejects.toThrow();
    const opened = await sessionIdOf(identity, signedIn?.session as never);
    await own.service.stop();
    const entries = await since(guarded.accountId, before);
    expect(told(entries).toSorted()).toEqual([
      ['account.recovery_code_used', {}],
      ['account.sign_in_failed', { reason: 'wrong_code' }],
      ['account.signed_in', { by: 'oidc', issuer: issuer.url }],
    ]);
    const entry = entries.find(({ action }) => action === 'account.signed_in');
    expect(entry).toMatchObject({ actor: 'session', credentialId: opened, address: '203.0.113.9' });
  });
});

describe('of what takes more than a session, the audit log says', () => {
  it('what was not good, by which session, and by no more than 20 entries an hour', async () => {
    const own = await identity.connect({ env: { ...issuer.env(), PASSWORD_FAILURES_PER_15_MINUTES: '3' } });
    const [{ account }, guarded] = [await signUpSomeone(identity), await guardSomeone(identity)];
    const [before, guardedBefore] = [await entriesOf(account.id), await entriesOf(guarded.accountId)];
    const link = (accountId: string, proof: object) =>
      outcomeOf(
        own.oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: accountId, ...proof }, FOR_SOMEBODY),
      );
    for (let i = 0; i < 25; i += 1) await link(account.id, { password: `guess ${i}` });
    await own.accounts.signIn({ email: account.email, password: 'a guess' }, FOR_ANYBODY).catch(() => undefined);
    const { accountId } = guarded;
    const wrong = { password: PASSWORD, code: guarded.wrongCode() };
    await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [issuer.url, accountId, accountId]);
    await outcomeOf(own.oidc.unlinkOidc({ accountId, issuer: 'test', ...wrong }, FOR_SOMEBODY));
    await outcomeOf(own.twoFactor.disableTwoFactor({ ...guarded, ...wrong, password: 'a guess' }, FOR_SOMEBODY));
    await outcomeOf(own.twoFactor.disableTwoFactor({ ...guarded, ...wrong }, FOR_SOMEBODY));
    for (let i = 0; i < 3; i += 1) await outcomeOf(own.twoFactor.verifyTwoFactorCode({ ...guarded, ...wrong }, FOR_SOMEBODY));
    // Past a limit nothing is looked at.
    expect(await link(accountId, { password: '' })).toBe('two_factor_attempts_reached');
    expect(await link(account.id, { password: PASSWORD })).toBe('password_attempts_reached');
    await own.service.stop();
    const entries = await since(account.id, before);
    const reasonsOf = (found: readonly ShownEntry[], action: string) =>
      found.filter((entry) => entry.action === action).map(({ changes }) => changes.reason);
    expect(reasonsOf(entries, 'account.proof_failed')).toEqual([
      ...Array(3).fill('wrong_password'),
      ...Array(20).fill('too_many_passwords'),
    ]);
    // Whoever guesses with a session does not hide who guesses without.
    expect(reasonsOf(entries, 'account.sign_in_failed')).toEqual(['wrong_password']);
    const shown = entries.find(({ action }) => action === 'account.proof_failed');
    expect(shown).toMatchObject({ actor: 'session', ...SOMEBODY, subject: `account ${account.id}` });
    expect(reasonsOf(await since(accountId, guardedBefore), 'account.proof_failed')).toEqual([
      'wrong_code',
      'wrong_password',
      ...Array(3).fill('wrong_code'),
      'too_many_codes',
      'too_many_codes',
    ]);
  });

  it('nothing of a password that was not given', async () => {
    const own = await identity.connect({ env: issuer.env() });
    const { account } = await signUpSomeone(identity);
    const before = await entriesOf(account.id);
    const request = { issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: account.id };
    expect(await outcomeOf(own.oidc.startOidc(request, FOR_SOMEBODY))).toBe('password_missing');
    await own.service.stop();
    expect(await since(account.id, before)).toEqual([]);
  });
});

describe('of keys and avatars, the audit log says', () => {
  it('what was made, changed and revoked, and no more than once', async () => {
    const accountId = await someAccountId(identity);
    const before = await entriesOf(accountId);
    const { apiKey, plaintextKey } = await identity.apiKeys.createApiKey({ ...OPEN_KEY, accountId }, FOR_SOMEBODY);
    const ref = { accountId, apiKeyId: apiKey?.id ?? '' };
    const expiresAt = new Date(identity.clock.now().getTime() + 86_400_000);
    const expiry = { case: 'expiresAt' as const, value: timestampFromDate(expiresAt) };
    await identity.apiKeys.updateApiKey({ ...ref, name: 'Renamed', expiry }, FOR_SOMEBODY);
    await identity.apiKeys.updateApiKey({ ...ref }, FOR_SOMEBODY);
    for (let i = 0; i < 2; i += 1) await identity.apiKeys.revokeApiKey(ref, FOR_SOMEBODY);
    await expect(identity.apiKeys.updateApiKey({ ...ref, name: 'Too late' }, FOR_SOMEBODY)).rejects.toThrow();
    const entries = await since(accountId, before);
    const { scopes, allApplications } = OPEN_KEY;
    const created = { name: OPEN_KEY.name, scopes, allApplications, applicationIds: [], expiresAt: null };
    expect(told(entries)).toEqual([
      ['api_key.created', created],
      ['api_key.updated', { name: 'Renamed', expiresAt: expiresAt.toISOString() }],
      ['api_key.revoked', { name: 'Renamed' }],
    ]);
    for (const entry of entries) expect(entry).toMatchObject({ ...SOMEBODY, subject: `api_key ${ref.apiKeyId}` });
    expect(JSON.stringify(entries)).not.toContain(plaintextKey.slice(-16));
  });

  it('that the avatar is another, once and by whoever sent it', async () => {
    const accountId = await someAccountId(identity);
    const before = await entriesOf(accountId);
    const avatar = { accountId, avatarId: randomUUID(), uploadedAt: timestampFromDate(identity.clock.now()) };
    for (let i = 0; i < 2; i += 1) await identity.accounts.setAvatar(avatar, FOR_SOMEBODY);
    const entries = await since(accountId, before);
    expect(told(entries)).toEqual([['account.avatar_changed', { avatarId: avatar.avatarId }]]);
    expect(entries[0]).toMatchObject({ actor: 'session', ...SOMEBODY });
  });
});

it('what an operator does is an operator’s', async () => {
  const call = accountsCalls(servers);
  const { username, email } = someSignUp();
  await call(['create', '--username', username, '--email', email, '--generate']);
  const { rows } = await identity.db.query('select id from account where email = $1', [email]);
  const accountId: string = rows[0].id;
  const { apiKey } = await createSomeKey(identity, { accountId });
  const { data } = await call(['reset-password', email, '--generate', '--json']);
  await identity.accounts.signIn({ email, password: data.password });
  await call(['sign-out', email]);
  await call(['revoke-key', email, apiKey.id]);
  const guarded = await guardSomeone(identity);
  await call(['two-factor-off', guarded.account.email]);
  const subject = randomUUID();
  await identity.db.query('insert into oidc_link values ($1, $2, $3, now())', [issuer.url, subject, guarded.accountId]);
  await call(['unlink', guarded.account.email, issuer.url]);
  const entries = (await entriesOf(accountId)).filter(({ actor }) => actor === 'operator');
  expect(told(entries)).toEqual([
    ['account.created', { username, by: 'operator' }],
    ['account.password_reset', { endedSessions: 0, removedLinks: 0 }],
    ['account.signed_out_everywhere', { sessions: 1 }],
    ['api_key.revoked', { name: apiKey.name }],
  ]);
  expect(entries[0]).toMatchObject({ credentialId: undefined, address: undefined, requestId: undefined });
  const others = (await entriesOf(guarded.accountId)).filter(({ actor }) => actor === 'operator');
  expect(told(others)).toEqual([
    ['account.two_factor_disabled', { endedSessions: 1 }],
    ['account.oidc_unlinked', { issuer: issuer.url, subjects: [subject], endedSessions: 0 }],
  ]);
});

it('there is no entry without its change, and no change without its entry', async () => {
  const { apiKey, accountId } = await createSomeKey(identity);
  const ref = { accountId, apiKeyId: apiKey.id };
  const before = await entriesOf(accountId);
  const failing = async (table: string, run: () => Promise<unknown>) => {
    await identity.db.query(
      `create or replace function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by the test'; end $$`,
    );
    const timing = 'after insert or update or delete';
    await identity.db.query(
      `create constraint trigger refuse ${timing} on ${table} initially deferred for each row execute function refuse()`,
    );
    await run().finally(() => identity.db.query(`drop trigger refuse on ${table}`));
  };
  const revoke = () => identity.apiKeys.revokeApiKey(ref, FOR_SOMEBODY);
  await failing('api_key', () => expect(revoke()).rejects.toThrow());
  expect(await since(accountId, before)).toEqual([]);
  await failing('audit_entry', () => expect(revoke()).rejects.toThrow());
  const { rows } = await identity.db.query('select revoked_at from api_key where id = $1', [apiKey.id]);
  expect(rows).toEqual([{ revoked_at: null }]);
  await revoke();
  expect(await since(accountId, before)).toHaveLength(1);
});

it('keys are counted until they are revoked or past their end', async () => {
  const accountId = await someAccountId(identity);
  const usage = async () => {
    const { activeCount, activeCountMax } = await identity.apiKeys.getApiKeyUsage({ accountId });
    return [activeCount, activeCountMax];
  };
  expect(await usage()).toEqual([0n, 20n]);
  const { apiKey } = await createSomeKey(identity, { accountId });
  await createSomeKey(identity, { accountId, expiresAt: timestampFromDate(new Date(identity.clock.now().getTime() + 60_000)) });
  await createSomeKey(identity, { accountId });
  expect(await usage()).toEqual([3n, 20n]);
  await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: apiKey.id });
  identity.clock.advance(60_000);
  expect(await usage()).toEqual([1n, 20n]);
  expect(await identity.apiKeys.getApiKeyUsage({ accountId: 'x' })).toMatchObject({ activeCount: 0n });
});
