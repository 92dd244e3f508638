import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { type AuditEntry, readAuditLog } from '../client/audit-log.ts';
import { plain, uploadAvatar } from '../client/avatars.ts';
import { createApplication, createKey, type Key, type Owner, signUp } from '../client/caller.ts';
import { deleteFile, renameFile, upload } from '../client/files.ts';
import { codeAt, signInTo } from '../client/two-factor.ts';

const PANEL = '/api/v1/panel';
/** Entries that are written in the background. */
const LATE = ['account.sign_in_failed', 'account.proof_failed', 'file.deleted'];

const requestIdOf = (answer: Answer | undefined) => answer?.headers.get('x-request-id');
/** The names of what was done, the oldest first. */
const actionsOf = (entries: readonly AuditEntry[]) => entries.map(({ action }) => action).toReversed();

describe('after all that can be done in an account, its audit log', () => {
  let owner: Owner;
  let key: Key;
  let applicationId: string;
  let fileId: string;
  let recoveryCodes: string[];
  let entries: AuditEntry[];
  const answers: Record<string, Answer> = {};
  const find = (action: string) => entries.find((entry) => entry.action === action);

  beforeAll(async () => {
    owner = await signUp();
    key = await createKey(owner, { name: 'Of the log' });
    applicationId = await createApplication(key.api, 'Audited');
    const query = { applicationId };
    const set = (field: string, value: string) => key.api.patch(`${PANEL}/update-application-settings`, { field, value }, query);
    answers.version = await set('version', '2.0');
    for (const [field, value] of [
      ['version', '2.0'],
      ['status', 'paused'],
      ['status', 'online'],
    ] as const)
      await set(field, value);
    await key.api.post(`${PANEL}/create-application-license-levels`, { levels: ['Basic', 'Pro'] }, query);
    await key.api.patch(`${PANEL}/update-api-keys`, { type: 'socketKey' }, query);
    answers.upload = await upload(key.api, applicationId, 'release', 'the bytes');
    await upload(key.api, applicationId, 'left');
    fileId = answers.upload.data.id;
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
    for (const password of ['not the password', owner.password])
      await owner.session.post('/api/v1/auth/two-factor/disable', { password, code: recoveryCodes[1] });
    await eventually(
      async () => {
        entries = await readAuditLog(owner.session);
        return entries.filter(({ action }) => LATE.includes(action)).length === 4;
      },
      { timeoutMs: 20_000, intervalMs: 200 },
    );
  });

  it('has one entry for each change, in order, and none for requests without effect', () => {
    const application = 'created setting_updated paused resumed license_levels_replaced runtime_key_rotated';
    expect(actionsOf(entries).filter((action) => !LATE.includes(action))).toEqual([
      ...['account.created', 'api_key.created', ...application.split(' ').map((action) => `application.${action}`)],
      ...['file.uploaded', 'file.uploaded', 'file.renamed', 'account.avatar_changed', 'api_key.updated', 'application.deleted'],
      ...['api_key.revoked', 'account.two_factor_enabled', 'account.recovery_code_used', 'account.signed_in'],
      ...['account.recovery_code_used', 'account.two_factor_disabled'],
    ]);
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  it('names the credential, the address and the request', () => {
    const byKey = { kind: 'api_key', credentialId: key.id, address: '127.0.0.1' };
    const bySession = { ...byKey, kind: 'session', credentialId: find('account.created')?.actor.credentialId };
    expect(find('application.setting_updated')).toMatchObject({
      actor: byKey,
      requestId: requestIdOf(answers.version),
      subject: { kind: 'application', id: applicationId },
      applicationId,
      changes: { field: 'version', value: '2.0', previous: '1.0' },
    });
    expect(entries.findLast(({ action }) => action === 'file.uploaded')).toMatchObject({
      actor: byKey,
      requestId: requestIdOf(answers.upload),
      subject: { kind: 'file', id: fileId },
      applicationId,
      changes: { displayName: 'release', byteSize: 9, checksum: answers.upload?.data.checksum },
    });
    expect(find('account.avatar_changed')).toMatchObject({
      actor: bySession,
      requestId: requestIdOf(answers.avatar),
      subject: { kind: 'account', id: owner.accountId },
      applicationId: null,
    });
    expect(find('application.deleted')).toMatchObject({ actor: bySession, changes: { name: 'Audited' } });
    const changes = { reason: 'wrong_password' };
    const anonymous = { kind: 'anonymous', credentialId: null, address: '127.0.0.1' };
    expect(find('account.sign_in_failed')).toMatchObject({ actor: anonymous, changes });
    expect(find('account.proof_failed')).toMatchObject({ actor: bySession, changes });
    const deletions = entries.filter(({ action }) => action === 'file.deleted');
    expect(deletions.map(({ actor, changes }) => [actor.kind, changes]).toSorted()).toEqual([
      ['service', { displayName: 'left', because: 'application.deleted' }],
      ['session', { displayName: 'release-2' }],
    ]);
  });

  it('holds no secret, and is for its owner’s sessions alone', async () => {
    const text = JSON.stringify(entries);
    const { password, csrfToken, cookie, email } = owner;
    for (const secret of [password, csrfToken, cookie.slice('session='.length), key.text.slice(-48), email, ...recoveryCodes])
      expect(text).not.toContain(secret);
    const other = await signUp();
    expect(actionsOf(await readAuditLog(other.session))).toEqual(['account.created']);
    expect(await readAuditLog(other.session, 100, { applicationId })).toEqual([]);
  });
});
