import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { type AuditEntry, readAuditLog } from '../client/audit-log.ts';
import { plain, uploadAvatar } from '../client/avatars.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { upload } from '../client/files.ts';
import { signInTo } from '../client/two-factor.ts';

const PANEL = '/api/v1/panel';
/** Entries that are written in the background. */
const LATE = ['account.sign_in_failed', 'file.deleted'];

it('the audit log has an entry of each service for each change, in order, with credential, address and request, for its owner', async () => {
  const owner = await signUp();
  const { session, accountId, password, csrfToken, cookie, email } = owner;
  const key = await createKey(owner, { name: 'Of the log' });
  const applicationId = await createApplication(key.api, 'Audited');
  const set = () => key.api.patch(`${PANEL}/update-application-settings`, { field: 'version', value: '2.0' }, { applicationId });
  const [version] = [await set(), await set()];
  const uploaded = await upload(key.api, applicationId, 'release', 'the bytes');
  const avatar = await uploadAvatar(session, await plain(20, 20).png().toBuffer());
  await session.delete(`${PANEL}/delete-application`, { applicationId, code: '' });
  for (let i = 0; i < 2; i += 1) await session.post(`${PANEL}/api-keys/${key.id}/revoke`);
  await signInTo(session, { email, password: 'not the password' });
  let entries: AuditEntry[] = [];
  await eventually(
    async () => {
      entries = await readAuditLog(session);
      return entries.filter(({ action }) => LATE.includes(action)).length === 2;
    },
    { timeoutMs: 20_000, intervalMs: 200 },
  );
  const actions = entries.map(({ action }) => action).filter((action) => !LATE.includes(action));
  expect(actions.toReversed()).toEqual([
    ...['account.created', 'api_key.created', 'application.created', 'application.setting_updated', 'file.uploaded'],
    ...['account.avatar_changed', 'application.deleted', 'api_key.revoked'],
  ]);
  const find = (action: string) => entries.find((entry) => entry.action === action);
  const byKey = { kind: 'api_key', credentialId: key.id, address: '127.0.0.1' };
  const bySession = { ...byKey, kind: 'session', credentialId: find('account.created')?.actor.credentialId };
  expect(find('application.setting_updated')).toMatchObject({
    actor: byKey,
    requestId: version.headers.get('x-request-id'),
    subject: { kind: 'application', id: applicationId },
    applicationId,
    changes: { field: 'version', value: '2.0', previous: '1.0' },
  });
  expect(find('file.uploaded')).toMatchObject({
    actor: byKey,
    requestId: uploaded.headers.get('x-request-id'),
    subject: { kind: 'file', id: uploaded.data.id },
    applicationId,
    changes: { displayName: 'release', byteSize: 9, checksum: uploaded.data.checksum },
  });
  expect(find('account.avatar_changed')).toMatchObject({
    actor: bySession,
    requestId: avatar.headers.get('x-request-id'),
    subject: { kind: 'account', id: accountId },
    applicationId: null,
  });
  expect(find('application.deleted')).toMatchObject({ actor: bySession, changes: { name: 'Audited' } });
  expect(find('account.sign_in_failed')?.actor).toEqual({ kind: 'anonymous', credentialId: null, address: '127.0.0.1' });
  expect(find('file.deleted')).toMatchObject({ actor: { kind: 'service' }, changes: { because: 'application.deleted' } });
  for (const secret of [password, csrfToken, cookie.slice('session='.length), key.text.slice(-48), email])
    expect(JSON.stringify(entries)).not.toContain(secret);
  const other = await signUp();
  expect((await readAuditLog(other.session)).map(({ action }) => action)).toEqual(['account.created']);
  expect(await readAuditLog(other.session, 100, { applicationId })).toEqual([]);
});
