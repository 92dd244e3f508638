import { expect, it } from 'vitest';
import { createApplication, createKey, signUp } from '../testing/caller.ts';

it('twelve rotations at once: exactly two succeed, and the keys are those of the last', async () => {
  const { api } = await createKey(await signUp());
  const applicationId = await createApplication(api);
  const before = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      api.patch('/api/v1/panel/update-api-keys', { type: i % 2 ? 'socketKey' : 'httpKey' }, { applicationId }),
    ),
  );
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, 200, ...Array(10).fill(429)]);
  const after = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  expect([after.socketKey, after.httpKey]).not.toEqual([before.socketKey, before.httpKey]);
  expect(after.updatedAt > before.updatedAt).toBe(true);
});

it('forty settings at once: none is lost', async () => {
  const { api } = await createKey(await signUp());
  const applicationId = await createApplication(api);
  const fields = ['applicationLicenseRequiresClientId', 'applicationUserRequiresClientId', 'applicationUserRequiresLicense'];
  const settings = [
    ...fields.map((field) => ({ field, value: true })),
    { field: 'status', value: 'paused' },
    { field: 'version', value: '2.0' },
  ];
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      api.patch('/api/v1/panel/update-application-settings', settings[i % settings.length] as object, { applicationId }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await api.get('/api/v1/panel/get-application-settings', { applicationId })).data).toEqual({
    applicationLicenseRequiresClientId: true,
    applicationUserRequiresClientId: true,
    applicationUserRequiresLicense: true,
    status: 'paused',
    version: '2.0',
  });
});

it('forty applications at once: all are there, each once, with keys of its own', async () => {
  const { api } = await createKey(await signUp());
  const names = Array.from({ length: 40 }, (_, i) => `application ${i}`);
  await Promise.all(names.map((name) => api.post('/api/v1/panel/create-application', { name })));
  const { data } = await api.get('/api/v1/panel/get-applications');
  const found = data as Array<{ id: string; name: string; applicationApiKeys: { socketKey: string; httpKey: string } }>;
  expect(found.map(({ name }) => name).sort()).toEqual([...names].sort());
  expect(new Set(found.map(({ id }) => id)).size).toBe(40);
  expect(new Set(found.flatMap(({ applicationApiKeys: keys }) => [keys.socketKey, keys.httpKey])).size).toBe(80);
});

it('sets of license levels at once: one of them stands whole', async () => {
  const { api } = await createKey(await signUp());
  const applicationId = await createApplication(api);
  const sets = Array.from({ length: 16 }, (_, i) => Array.from({ length: (i % 5) + 1 }, (_level, j) => `${i}-${j}`));
  const answers = await Promise.all(
    sets.map((levels) => api.post('/api/v1/panel/create-application-license-levels', { levels }, { applicationId })),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(sets).toContainEqual((await api.get('/api/v1/panel/get-application-license-levels', { applicationId })).data);
});

it('deleting at once: one succeeds, and whatever else is under way is whole or not found', async () => {
  const { api } = await createKey(await signUp());
  const applicationId = await createApplication(api);
  const deletions = Array.from({ length: 6 }, () => api.delete('/api/v1/panel/delete-application', { applicationId, code: '' }));
  const others = Array.from({ length: 12 }, (_, i) =>
    i % 2
      ? api.get('/api/v1/panel/get-application-settings', { applicationId })
      : api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId }),
  );
  const outcomes = (await Promise.all(deletions)).map(({ status, code }) => `${status} ${code}`).sort();
  expect(outcomes).toEqual(['200 ', ...Array(5).fill('404 not_found')]);
  for (const { status, code } of await Promise.all(others)) expect(['200 ', '404 not_found']).toContain(`${status} ${code}`);
  expect((await api.get('/api/v1/panel/get-applications')).data).toEqual([]);
});

it('changes of one key at once: none is lost, and revoking wins', async () => {
  const owner = await signUp();
  const { id, api } = await createKey(owner);
  const path = `/api/v1/panel/api-keys/${id}`;
  const answers = await Promise.all([
    owner.session.patch(path, { name: 'Renamed' }),
    owner.session.patch(path, { scopes: ['applications:read'] }),
    owner.session.patch(path, { expiresAt: '2999-01-01T00:00:00Z' }),
  ]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  const [record] = (await owner.session.get('/api/v1/panel/api-keys')).data;
  expect(record).toMatchObject({ name: 'Renamed', scopes: ['applications:read'], expiresAt: '2999-01-01T00:00:00.000Z' });
  await Promise.all([
    owner.session.post(`${path}/revoke`),
    ...Array.from({ length: 5 }, () => owner.session.patch(path, { scopes: ['applications:read', 'files:read'] })),
  ]);
  expect((await api.get('/api/v1/panel/get-applications')).code).toBe('api_key_revoked');
});
