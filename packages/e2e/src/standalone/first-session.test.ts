import { expect, it } from 'vitest';
import { createKey, sharedApi, signUp, unique } from '../client/caller.ts';
import { signInTo } from '../client/two-factor.ts';

const PANEL = '/api/v1/panel';
const TIMESTAMP = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID_V7 = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);

it('every success of an application has the message and the fields of the specification, and no others', async () => {
  const { api, record, text } = await createKey(await signUp(), { name: ' First key ' });
  expect(text).toMatch(new RegExp(`^lk_mgmt_${record.publicId}_[0-9A-Za-z]{44}${record.keyLast4}$`));
  const names = [unique('app-'), 'same name', 'same name'];
  for (const name of names) {
    const created = await api.post(`${PANEL}/create-application`, { name: `  ${name} ` });
    expect(JSON.parse(created.text)).toEqual({ success: true, message: 'Successfully create application' });
    expect(created.headers.get('location')).toMatch(/applicationId=[0-9a-f-]{36}$/);
  }
  const list = await api.get(`${PANEL}/get-applications`);
  const applicationApiKeys = {
    socketKey: expect.stringMatching(/^lk_sock_[0-9A-Za-z]{32}$/),
    httpKey: expect.stringMatching(/^lk_http_[0-9A-Za-z]{32}$/),
    updatedAt: TIMESTAMP,
  };
  const data = names.map((name) => ({ id: UUID_V7, name, applicationApiKeys }));
  expect(JSON.parse(list.text)).toEqual({ success: true, message: 'Successfully fetched applications', data });
  const [{ id: applicationId, applicationApiKeys: before }] = list.data;

  const query = { applicationId };
  const flags = ['applicationLicenseRequiresClientId', 'applicationUserRequiresClientId', 'applicationUserRequiresLicense'];
  const settings = { ...Object.fromEntries(flags.map((flag) => [flag, false])), version: '1.0', status: 'paused' };
  const levels = ['Basic', ' Pro ', '専門家'];
  const steps = [
    [
      await api.patch(`${PANEL}/update-application-settings`, { field: 'status', value: 'paused' }, query),
      'Successfully update application settings',
    ],
    [await api.get(`${PANEL}/get-application-settings`, query), 'Successfully fetched application settings', settings],
    [await api.post(`${PANEL}/create-application-license-levels`, { levels }, query), 'License levels save successfully'],
    [
      await api.get(`${PANEL}/get-application-license-levels`, query),
      'Successfully fetched application license levels',
      ['Basic', 'Pro', '専門家'],
    ],
    [await api.patch(`${PANEL}/update-api-keys`, { type: 'httpKey' }, query), 'Successfully update api key'],
  ] as const;
  for (const [answer, message, expected] of steps)
    expect(JSON.parse(answer.text)).toEqual({ success: true, message, ...(expected && { data: expected }) });
  const after = (await api.get(`${PANEL}/get-applications`)).data[0].applicationApiKeys;
  expect([after.socketKey, after.httpKey !== before.httpKey, after.updatedAt > before.updatedAt]).toEqual([
    before.socketKey,
    true,
    true,
  ]);
  const deleted = await api.delete(`${PANEL}/delete-application`, { applicationId, code: '' });
  expect(JSON.parse(deleted.text)).toEqual({ success: true, message: 'Application deleted successfully' });
  expect((await api.get(`${PANEL}/get-applications`)).data).toHaveLength(2);
});

it('an account, its session and its keys have the fields of the decisions and no others', async () => {
  const owner = await signUp();
  const { session, username, email, csrfToken } = owner;
  const account = { id: UUID_V7, username, email, avatarUrl: null, twoFactorEnabled: false, createdAt: TIMESTAMP };
  expect((await session.get('/api/v1/auth/session')).data).toEqual({ account, csrfToken });
  expect((await signInTo(sharedApi(), owner)).data).toEqual({ account, csrfToken: expect.stringMatching(/^.{32,}$/) });

  const { record, id } = await createKey(owner, { expiresAt: '2999-01-02T03:04:05+01:00' });
  const expected = {
    id: UUID_V7,
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
    createdAt: TIMESTAMP,
    updatedAt: TIMESTAMP,
  };
  expect(record).toEqual(expected);
  const list = await session.get(`${PANEL}/api-keys`);
  expect([list.message, list.data]).toEqual(['Successfully fetched API keys.', [expected]]);
  expect((await session.patch(`${PANEL}/api-keys/${id}`, { name: 'Renamed' })).data).toEqual({ ...expected, name: 'Renamed' });
  expect((await session.post(`${PANEL}/api-keys/${id}/revoke`)).data).toEqual({
    ...expected,
    name: 'Renamed',
    revokedAt: TIMESTAMP,
  });
  expect((await session.post('/api/v1/auth/sign-out')).data).toBeUndefined();
});
