import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { AUDIT_LOG, type AuditEntry, readAuditLog } from '../testing/audit-log.ts';
import { plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, type Key, type Owner, readState, signUp, unique } from '../testing/caller.ts';
import { deleteFile, findFileId, outcome, renameFile, upload } from '../testing/files.ts';
import { startInstanceForTest, startOwnInstance } from '../testing/own-instance.ts';
import { codeAt, signInTo } from '../testing/two-factor.ts';

const PANEL = '/api/v1/panel';

const requestIdOf = ({ headers }: Answer) => headers.get('x-request-id');

/** The names of what was done, the oldest first. */
const actionsOf = (entries: readonly AuditEntry[]) => entries.map(({ action }) => action).toReversed();

const find = (entries: readonly AuditEntry[], action: string) => entries.find((entry) => entry.action === action);

describe('after all that can be done in an account, its audit log', () => {
  let owner: Owner;
  let key: Key;
  let applicationId: string;
  let fileId: string;
  let recoveryCodes: string[];
  let entries: AuditEntry[];
  const answers: Record<string, Answer> = {};

  beforeAll(async () => {
    owner = await signUp();
    key = await createKey(owner, { name: 'Of the log' });
    applicationId = await createApplication(key.api, 'Audited');
    const query = { applicationId };
    const set = (field: string, value: string) => key.api.patch(`${PANEL}/update-application-settings`, { field, value }, query);
    answers.version = await set('version', '2.0');
    await set('version', '2.0');
    await set('status', 'paused');
    await set('status', 'online');
    await key.api.post(`${PANEL}/create-application-license-levels`, { levels: ['Basic', 'Pro'] }, query);
    await key.api.patch(`${PANEL}/update-api-keys`, { type: 'socketKey' }, query);
    answers.upload = await upload(key.api, applicationId, 'release', 'the bytes');
    await upload(key.api, applicationId, 'left');
    fileId = await findFileId(key.api, applicationId, 'release');
    await renameFile(key.api, applicationId, fileId, 'release-2');
    await deleteFile(owner.session, applicationId, fileId);
    answers.avatar = await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer());
    await owner.session.patch(`${PANEL}/api-keys/${key.id}`, { name: 'Renamed' });
    await owner.session.delete(`${PANEL}/delete-application`, { applicationId, code: '' });
    for (let i = 0; i < 2; i += 1) await owner.session.post(`${PANEL}/api-keys/${key.id}/revoke`);
    const { secret } = (await owner.session.post('/api/v1/auth/two-factor/set-up')).data;
    const enabled = await owner.session.post('/api/v1/auth/two-factor/enable', { code: codeAt(secret, Date.now()) });
    recoveryCodes = enabled.data.recoveryCodes;
    await signInTo(owner.session, { ...owner, password: 'not the password' });
    await signInTo(owner.session, owner, recoveryCodes[0]);
    const off = { password: owner.password, code: recoveryCodes[1] };
    await owner.session.post('/api/v1/auth/two-factor/disable', { ...off, password: 'not the password' });
    await owner.session.post('/api/v1/auth/two-factor/disable', off);
    // Removed behind the scenes, and written behind the scenes.
    await eventually(
      async () => {
        entries = await readAuditLog(owner.session);
        const failed = [find(entries, 'account.sign_in_failed'), find(entries, 'account.proof_failed')];
        const late = [...failed, entries.filter(({ action }) => action === 'file.deleted')[1]];
        return late.every((entry) => entry !== undefined);
      },
      { timeoutMs: 20_000, intervalMs: 200 },
    );
  });

  it('says each once, in order, and nothing of what changed nothing', () => {
    const late = ['account.sign_in_failed', 'account.proof_failed', 'file.deleted'];
    expect(actionsOf(entries).filter((action) => !late.includes(action))).toEqual([
      'account.created',
      'api_key.created',
      'application.created',
      'application.setting_updated',
      'application.paused',
      'application.resumed',
      'application.license_levels_replaced',
      'application.runtime_key_rotated',
      'file.uploaded',
      'file.uploaded',
      'file.renamed',
      'account.avatar_changed',
      'api_key.updated',
      'application.deleted',
      'api_key.revoked',
      'account.two_factor_enabled',
      'account.recovery_code_used',
      'account.signed_in',
      'account.recovery_code_used',
      'account.two_factor_disabled',
    ]);
    expect(entries.filter(({ action }) => late.includes(action))).toHaveLength(4);
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  it('says with which credential, from where and in which request', () => {
    const created = find(entries, 'account.created');
    const byKey = { kind: 'api_key', credentialId: key.id, address: '127.0.0.1' };
    const bySession = { ...byKey, kind: 'session', credentialId: created?.actor.credentialId };
    expect(created?.actor.kind).toBe('session');
    expect(find(entries, 'application.setting_updated')).toMatchObject({
      actor: byKey,
      requestId: requestIdOf(answers.version as Answer),
      subject: { kind: 'application', id: applicationId },
      applicationId,
      changes: { field: 'version', value: '2.0', previous: '1.0' },
    });
    expect(entries.findLast(({ action }) => action === 'file.uploaded')).toMatchObject({
      actor: byKey,
      requestId: requestIdOf(answers.upload as Answer),
      subject: { kind: 'file', id: fileId },
      applicationId,
      changes: { displayName: 'release', byteSize: 9, checksum: answers.upload?.data.checksum },
    });
    expect(find(entries, 'account.avatar_changed')).toMatchObject({
      actor: bySession,
      requestId: requestIdOf(answers.avatar as Answer),
      subject: { kind: 'account', id: owner.accountId },
      applicationId: null,
    });
    expect(find(entries, 'application.deleted')).toMatchObject({ actor: bySession, changes: { name: 'Audited' } });
    const failed = {
      actor: { kind: 'anonymous', credentialId: null, address: '127.0.0.1' },
      changes: { reason: 'wrong_password' },
    };
    expect(find(entries, 'account.sign_in_failed')).toMatchObject(failed);
    expect(find(entries, 'account.proof_failed')).toMatchObject({ ...failed, actor: bySession });
    const deletions = entries.filter(({ action }) => action === 'file.deleted');
    expect(deletions.map(({ actor, changes }) => [actor.kind, changes]).toSorted()).toEqual([
      ['service', { displayName: 'left', because: 'application.deleted' }],
      ['session', { displayName: 'release-2' }],
    ]);
  });

  it('is the same on pages of any size, and by application or action', async () => {
    for (const limit of [1, 3, 7]) expect(await readAuditLog(owner.session, limit)).toEqual(entries);
    const ofApplication = entries.filter((entry) => entry.applicationId === applicationId);
    expect(await readAuditLog(owner.session, 4, { applicationId })).toEqual(ofApplication);
    const renames = entries.filter(({ action }) => action === 'file.renamed');
    expect(await readAuditLog(owner.session, 4, { action: 'file.renamed' })).toEqual(renames);
  });

  it('holds no secret', () => {
    const text = JSON.stringify(entries);
    const secrets = [
      owner.password,
      owner.csrfToken,
      owner.cookie.slice('session='.length),
      key.text.slice(-48),
      ...recoveryCodes,
    ];
    expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
    expect(text).not.toContain(owner.email);
  });

  it('is nobody else’s', async () => {
    const other = await signUp();
    expect(actionsOf(await readAuditLog(other.session))).toEqual(['account.created']);
    expect(await readAuditLog(other.session, 100, { applicationId })).toEqual([]);
    const cursor = (await owner.session.get(AUDIT_LOG, { limit: '1' })).data.nextCursor;
    expect(outcome(await other.session.get(AUDIT_LOG, { cursor }))).toBe('400 bad_request');
    const forged = Buffer.from(`${Date.now()} ${owner.accountId}`).toString('base64url');
    expect(outcome(await owner.session.get(AUDIT_LOG, { cursor: forged }))).toBe('400 bad_request');
  });

  it('is not for keys', async () => {
    const { api } = await createKey(await signUp());
    expect(outcome(await api.get(AUDIT_LOG))).toBe('403 session_required');
  });
});

it('what is read and what is refused is not in the audit log', async () => {
  const owner = await signUp();
  const key = await createKey(owner, { scopes: ['applications:read'] });
  const before = await readAuditLog(owner.session);
  await readState(owner);
  await key.api.get(`${PANEL}/get-applications`);
  await key.api.post(`${PANEL}/create-application`, { name: 'Refused by its scope' });
  await owner.session.post(`${PANEL}/create-application`, { name: 'short' });
  await owner.session.post(`${PANEL}/api-keys`, { name: 'A key', scopes: ['nothing'], allApplications: true });
  await owner.session.delete(`${PANEL}/delete-application`, { applicationId: owner.accountId, code: '' });
  expect(await readAuditLog(owner.session)).toEqual(before);
});

it('every change of many at once has its entry, whoever makes it and wherever it is written', async () => {
  const owner = await signUp();
  const key = await createKey(owner);
  const applicationId = await createApplication(key.api);
  const before = await readAuditLog(owner.session);
  const rounds = Array.from({ length: 8 }, (_, i) => i);
  await Promise.all([
    ...rounds.map((i) => createApplication(key.api, `At once ${i}`)),
    ...rounds.map((i) => owner.session.patch(`${PANEL}/api-keys/${key.id}`, { name: `At once ${i}` })),
    ...rounds.map((i) =>
      key.api.patch(`${PANEL}/update-application-settings`, { field: 'version', value: `9.${i}` }, { applicationId }),
    ),
    upload(key.api, applicationId, 'at-once'),
  ]);
  const entries = await readAuditLog(owner.session, 5);
  const added = actionsOf(entries.slice(0, entries.length - before.length)).toSorted();
  const expected = ['api_key.updated', 'application.created', 'application.setting_updated'].flatMap((each) =>
    rounds.map(() => each),
  );
  expect(added).toEqual([...expected, 'file.uploaded']);
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
});

it('entries are kept for as many days as is set', async () => {
  const database = await createEmptyTestDatabase();
  const SECRET_KEY = unique('a secret key of the tests ');
  const first = await startOwnInstance({ databaseUrl: database.url, env: { SECRET_KEY } });
  onTestFinished(() => database.drop());
  const owner = await signUp(first.api);
  await createApplication(owner.session, 'Of long ago');
  await createApplication(owner.session, 'Of these days');
  await first.stop();
  await withClient(database.url, (client) =>
    client.query(`update apps.audit_entry set at = now() - interval '4 days' where changes->>'name' = 'Of long ago'`),
  );
  const env = { SECRET_KEY, AUDIT_RETENTION_DAYS: '3' };
  const { api } = await startInstanceForTest({ databaseUrl: database.url, env });
  const session = api.with(owner.session.headers);
  await eventually(
    async () => expect(actionsOf(await readAuditLog(session))).toEqual(['account.created', 'application.created']),
    { timeoutMs: 15_000 },
  );
});
