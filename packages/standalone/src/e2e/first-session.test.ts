import { expect, it } from 'vitest';
import { createApplication, createKey, signUp, unique } from '../testing/caller.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it('a new account makes a key, and with it an application, which it pauses', async () => {
  const owner = await signUp();
  const { api, record, text } = await createKey(owner, { name: ' First key ' });
  expect(text).toMatch(new RegExp(`^lk_mgmt_${record.publicId}_[0-9A-Za-z]{44}${record.keyLast4}$`));

  expect((await api.get('/api/v1/panel/get-applications')).data).toEqual([]);
  const name = unique('app-');
  const created = await api.post('/api/v1/panel/create-application', { name: `  ${name} ` });
  expect(JSON.parse(created.text)).toEqual({ success: true, message: 'Successfully create application' });

  const list = await api.get('/api/v1/panel/get-applications');
  expect(JSON.parse(list.text)).toEqual({
    success: true,
    message: 'Successfully fetched applications',
    data: [
      {
        id: expect.stringMatching(UUID_V7),
        name,
        applicationApiKeys: {
          socketKey: expect.stringMatching(/^lk_sock_[0-9A-Za-z]{32}$/),
          httpKey: expect.stringMatching(/^lk_http_[0-9A-Za-z]{32}$/),
          updatedAt: expect.stringMatching(TIMESTAMP),
        },
      },
    ],
  });
  const applicationId = list.data[0].id;

  const paused = await api.patch(
    '/api/v1/panel/update-application-settings',
    { field: 'status', value: 'paused' },
    { applicationId },
  );
  expect(JSON.parse(paused.text)).toEqual({ success: true, message: 'Successfully update application settings' });
  const settings = await api.get('/api/v1/panel/get-application-settings', { applicationId });
  expect(JSON.parse(settings.text)).toEqual({
    success: true,
    message: 'Successfully fetched application settings',
    data: {
      applicationLicenseRequiresClientId: false,
      applicationUserRequiresClientId: false,
      applicationUserRequiresLicense: false,
      version: '1.0',
      status: 'paused',
    },
  });
});

it('every other success says what the specification says', async () => {
  const owner = await signUp();
  const { api } = await createKey(owner);
  const applicationId = await createApplication(api);
  const levels = ['Basic', ' Pro ', '専門家'];

  const saved = await api.post('/api/v1/panel/create-application-license-levels', { levels }, { applicationId });
  expect(JSON.parse(saved.text)).toEqual({ success: true, message: 'License levels save successfully' });
  const fetched = await api.get('/api/v1/panel/get-application-license-levels', { applicationId });
  expect(JSON.parse(fetched.text)).toEqual({
    success: true,
    message: 'Successfully fetched application license levels',
    data: ['Basic', 'Pro', '専門家'],
  });
  const before = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  const rotated = await api.patch('/api/v1/panel/update-api-keys', { type: 'httpKey' }, { applicationId });
  expect(JSON.parse(rotated.text)).toEqual({ success: true, message: 'Successfully update api key' });
  const after = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  expect(after.socketKey).toBe(before.socketKey);
  expect(after.httpKey).not.toBe(before.httpKey);
  expect(after.updatedAt > before.updatedAt).toBe(true);

  const deleted = await api.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
  expect(JSON.parse(deleted.text)).toEqual({ success: true, message: 'Application deleted successfully' });
  expect((await api.get('/api/v1/panel/get-applications')).data).toEqual([]);
});

it('an account, its session and its keys have the fields of the decisions and no others', async () => {
  const owner = await signUp();
  const { session } = owner;
  const account = {
    id: expect.stringMatching(UUID_V7),
    username: owner.username,
    email: owner.email,
    avatarUrl: null,
    twoFactorEnabled: false,
    createdAt: expect.stringMatching(TIMESTAMP),
  };
  const found = await session.get('/api/v1/auth/session');
  expect(found.data).toEqual({ account, csrfToken: owner.csrfToken });
  // With its cookie, the sign-in would end the session.
  const elsewhere = session.with({ cookie: '', 'x-csrf-token': '' });
  const signedIn = await elsewhere.post('/api/v1/auth/sign-in', { email: owner.email, password: owner.password });
  expect(signedIn.data).toEqual({ account, csrfToken: expect.stringMatching(/^.{32,}$/) });

  const { record, id } = await createKey(owner, { expiresAt: '2999-01-02T03:04:05+01:00' });
  const expected = {
    id: expect.stringMatching(UUID_V7),
    name: 'Test key',
    publicId: expect.stringMatching(/^[0-9A-Za-z]{16}$/),
    keyLast4: expect.stringMatching(/^[0-9A-Za-z]{4}$/),
    scopes: expect.arrayContaining(['applications:read', 'account:read']),
    allApplications: true,
    applicationIds: [],
    expiresAt: '2999-01-02T02:04:05.000Z',
    revokedAt: null,
    lastUsedAt: null,
    lastUsedIp: null,
    createdAt: expect.stringMatching(TIMESTAMP),
    updatedAt: expect.stringMatching(TIMESTAMP),
  };
  expect(record).toEqual(expected);
  const list = await session.get('/api/v1/panel/api-keys');
  expect([list.message, list.data]).toEqual(['Successfully fetched API keys.', [expected]]);
  const renamed = await session.patch(`/api/v1/panel/api-keys/${id}`, { name: 'Renamed' });
  expect(renamed.data).toEqual({ ...expected, name: 'Renamed' });
  const revoked = await session.post(`/api/v1/panel/api-keys/${id}/revoke`);
  expect(revoked.data).toEqual({ ...expected, name: 'Renamed', revokedAt: expect.stringMatching(TIMESTAMP) });
  const signedOut = await session.post('/api/v1/auth/sign-out');
  expect(signedOut.data).toBeUndefined();
});

it('applications are listed oldest first, and names need not be unique', async () => {
  const { api } = await createKey(await signUp());
  const names = ['same name', 'another name', 'same name'];
  for (const name of names) await api.post('/api/v1/panel/create-application', { name });
  const { data } = await api.get('/api/v1/panel/get-applications');
  expect(data.map(({ name }: { name: string }) => name)).toEqual(names);
});
