import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AS_CALLER, auditReader, CALLER, type ShownEntry } from '@latchkey/audit/testing/audit-reader';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { describe, expect, it } from 'vitest';
import { finishAt, linkAt, openTestOidc, signInAt, someone } from '../testing/oidc-flow.ts';
import { runCommand } from '../testing/operator.ts';
import { createSomeKey, OPEN_KEY, PASSWORD, present, someAccountId, someSignUp } from '../testing/sample.ts';
import { guardSomeone, sessionIdOf } from '../testing/two-factor.ts';

const { identity, issuer } = await openTestOidc();
const entriesOf = auditReader(identity.service.routes);

/** A client without a credential, as the gateway names it. */
const ANONYMOUS = { headers: { 'x-latchkey-actor': 'anonymous - 203.0.113.9', 'x-request-id': 'request-of-anybody' } };

const summaries = (entries: readonly ShownEntry[]) => entries.map(({ action, changes }) => [action, changes]);

describe('the audit log records', () => {
  it('sign-up, sign-in and sign-out, each by its session', async () => {
    const request = someSignUp();
    const first = await identity.accounts.signUp(request, ANONYMOUS);
    const accountId = present(first.account).id;
    const ids = [await sessionIdOf(identity, present(first.session))];
    const again = { ...request, previousSessionToken: present(first.session).token };
    const second = await identity.accounts.signIn(again, ANONYMOUS);
    ids.push(await sessionIdOf(identity, present(second.session)));
    for (let i = 0; i < 2; i += 1) await identity.accounts.signOut({ accountId, sessionId: ids[1] ?? '' }, AS_CALLER);
    await identity.accounts.signIn(request, ANONYMOUS);
    for (let i = 0; i < 2; i += 1) await identity.accounts.signOutEverywhere({ accountId }, AS_CALLER);
    const entries = await entriesOf(accountId);
    expect(summaries(entries)).toEqual([
      ['account.created', { username: request.username, by: 'sign_up' }],
      ['account.signed_out', { because: 'signed_in' }],
      ['account.signed_in', { by: 'password' }],
      ['account.signed_out', {}],
      ['account.signed_in', { by: 'password' }],
      ['account.signed_out_everywhere', { sessions: 1 }],
    ]);
    const actors = entries.map(({ actor, credentialId }) => `${actor} ${credentialId}`);
    expect(actors.slice(0, 4)).toEqual([ids[0], ids[0], ids[1], CALLER.credentialId].map((id) => `session ${id}`));
    const origin = { address: '203.0.113.9', requestId: 'request-of-anybody', subject: `account ${accountId}` };
    expect(entries[0]).toMatchObject(origin);
    expect(JSON.stringify(entries)).not.toContain(request.email);
  });

  it('changes of the second factor, and used recovery codes', async () => {
    const guarded = await guardSomeone(identity);
    const [one = '', two = ''] = guarded.recoveryCodes;
    await guarded.signIn(one);
    await identity.twoFactor.verifyTwoFactorCode({ ...guarded, code: guarded.code() }, AS_CALLER);
    await identity.twoFactor.disableTwoFactor({ ...guarded, password: PASSWORD, code: two }, AS_CALLER);
    const entries = await entriesOf(guarded.accountId);
    expect(summaries(entries).slice(1)).toEqual([
      ['account.two_factor_enabled', { endedSessions: 0 }],
      ['account.recovery_code_used', {}],
      ['account.signed_in', { by: 'password' }],
      ['account.recovery_code_used', {}],
      ['account.two_factor_disabled', { endedSessions: 1 }],
    ]);
    expect(entries.at(-1)).toMatchObject({ actor: 'session', ...CALLER });
  });

  it('sign-up, sign-in, links and second factors by OpenID Connect', async () => {
    issuer.claims = someone();
    const created = await signInAt(identity, issuer);
    await signInAt(identity, issuer);
    const by = { by: 'oidc', issuer: issuer.url };
    expect(summaries(await entriesOf(present(created.account).id))).toEqual([
      ['account.created', { username: created.account?.username, ...by }],
      ['account.signed_in', by],
    ]);
    const { accountId, session, recoveryCodes } = await guardSomeone(identity);
    const [link = '', code = '', unlink = ''] = recoveryCodes;
    const subject = randomUUID();
    issuer.claims = { sub: subject };
    await linkAt(identity, issuer, { accountId, token: session.token, code: link });
    const { outcome } = await finishAt(identity, issuer);
    if (outcome.case !== 'pending') throw new Error(`The flow ended as ${outcome.case}`);
    const { signedIn } = await identity.oidc.completeOidc({ pending: outcome.value.pending, code }, ANONYMOUS);
    const opened = await sessionIdOf(identity, present(signedIn?.session));
    await identity.oidc.unlinkOidc({ accountId, issuer: issuer.url, password: PASSWORD, code: unlink }, AS_CALLER);
    const entries = (await entriesOf(accountId)).slice(2).filter(({ action }) => action !== 'account.recovery_code_used');
    expect(summaries(entries)).toEqual([
      ['account.oidc_linked', { issuer: issuer.url, subject }],
      ['account.signed_in', by],
      ['account.oidc_unlinked', { issuer: issuer.url, subjects: [subject], endedSessions: 2 }],
    ]);
    expect(entries[1]).toMatchObject({ actor: 'session', credentialId: opened, address: '203.0.113.9' });
    expect(entries[2]).toMatchObject({ actor: 'session', ...CALLER });
  });

  it('changes of keys and avatars, once', async () => {
    const accountId = await someAccountId(identity);
    const { apiKey, plaintextKey } = await identity.apiKeys.createApiKey({ ...OPEN_KEY, accountId }, AS_CALLER);
    const ref = { accountId, apiKeyId: present(apiKey).id };
    const expiresAt = new Date(identity.clock.now().getTime() + 86_400_000);
    const expiry = { case: 'expiresAt' as const, value: timestampFromDate(expiresAt) };
    await identity.apiKeys.updateApiKey({ ...ref, name: 'Renamed', expiry }, AS_CALLER);
    await identity.apiKeys.updateApiKey(ref, AS_CALLER);
    for (let i = 0; i < 2; i += 1) await identity.apiKeys.revokeApiKey(ref, AS_CALLER);
    const avatar = { accountId, avatarId: randomUUID(), uploadedAt: timestampFromDate(identity.clock.now()) };
    for (let i = 0; i < 2; i += 1) await identity.accounts.setAvatar(avatar, AS_CALLER);
    const entries = (await entriesOf(accountId)).slice(1);
    expect(summaries(entries)).toEqual([
      ['api_key.created', { ...OPEN_KEY, applicationIds: [], expiresAt: null }],
      ['api_key.updated', { name: 'Renamed', expiresAt: expiresAt.toISOString() }],
      ['api_key.revoked', { name: 'Renamed' }],
      ['account.avatar_changed', { avatarId: avatar.avatarId }],
    ]);
    for (const entry of entries) expect(entry).toMatchObject({ actor: 'session', ...CALLER });
    expect(entries[0]?.subject).toBe(`api_key ${ref.apiKeyId}`);
    expect(JSON.stringify(entries)).not.toContain(plaintextKey.slice(-16));
  });

  it('the commands of an operator', async () => {
    const { username, email } = someSignUp();
    const { account } = await runCommand(identity, ['create', '--username', username, '--email', email, '--generate']);
    const { apiKey } = await createSomeKey(identity, { accountId: account.id });
    const { password } = await runCommand(identity, ['reset-password', email, '--generate']);
    await identity.accounts.signIn({ email, password });
    await runCommand(identity, ['sign-out', email]);
    await runCommand(identity, ['revoke-key', email, apiKey.id]);
    const guarded = await guardSomeone(identity);
    await runCommand(identity, ['two-factor-off', guarded.account.email]);
    const all = [...(await entriesOf(account.id)), ...(await entriesOf(guarded.accountId))];
    const entries = all.filter(({ actor }) => actor === 'operator');
    expect(summaries(entries)).toEqual([
      ['account.created', { username, by: 'operator' }],
      ['account.password_reset', { endedSessions: 0, removedLinks: 0 }],
      ['account.signed_out_everywhere', { sessions: 1 }],
      ['api_key.revoked', { name: apiKey.name }],
      ['account.two_factor_disabled', { endedSessions: 1 }],
    ]);
    expect(entries[0]).toMatchObject({ credentialId: undefined, address: undefined, requestId: undefined });
  });
});

it('an entry and its change commit together', async () => {
  const { apiKey, accountId } = await createSomeKey(identity);
  const before = await entriesOf(accountId);
  const revoke = () => identity.apiKeys.revokeApiKey({ accountId, apiKeyId: apiKey.id }, AS_CALLER);
  for (const table of ['api_key', 'audit_entry']) {
    await whileFailing(identity.db, { table, when: 'commit' }, () => expect(revoke()).rejects.toThrow());
    expect(await entriesOf(accountId)).toEqual(before);
    expect((await identity.apiKeys.listApiKeys({ accountId })).apiKeys).toEqual([apiKey]);
  }
  await revoke();
  expect(await entriesOf(accountId)).toHaveLength(before.length + 1);
});
