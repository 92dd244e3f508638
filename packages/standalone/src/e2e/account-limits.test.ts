import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, createKey, type Owner, signUp } from '../testing/caller.ts';
import { deleteFile, findFileId, MIB, outcome, upload } from '../testing/files.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

const LIMITS = '/api/v1/panel/get-account-limits';
const CREATE = '/api/v1/panel/create-application';

describe('get-account-limits', () => {
  it('says what the account has and may have, to a key and to a session', async () => {
    const owner = await signUp();
    const { api, id } = await createKey(owner);
    const current = async () => {
      const { status, data, message } = await api.get(LIMITS);
      expect([status, message]).toEqual([200, 'Successfully fetched account limits']);
      expect((await owner.session.get(LIMITS)).data).toEqual(data);
      return data;
    };
    expect(await current()).toEqual({
      planName: 'Self-hosted',
      storageSizeMib: { currentValue: 0, maxValue: 1_024 },
      uploadedFilesCount: { currentValue: 0, maxValue: 100 },
      createdApplicationsCount: { currentValue: 0, maxValue: 200 },
      apiKeyCount: { currentValue: 1, maxValue: 20 },
    });
    const applicationId = await createApplication(api);
    const another = await createApplication(api);
    await upload(api, applicationId, 'small', 'x');
    await upload(api, applicationId, 'large', Buffer.alloc(3 * MIB - 1));
    await upload(api, another, 'other', 'x');
    const values = async () => {
      const { planName: _, ...amounts } = await current();
      return Object.values(amounts as Record<string, { currentValue: number }>).map(({ currentValue }) => currentValue);
    };
    expect(await values()).toEqual([4, 3, 2, 1]);
    await deleteFile(api, applicationId, await findFileId(api, applicationId, 'large'));
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: another, code: '' });
    const key = await createKey(owner);
    await owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`);
    // The file of the deleted application counts no more, whether or not it is removed yet.
    expect(await values()).toEqual([1, 1, 1, 1]);
    expect((await owner.session.get('/api/v1/panel/api-keys')).data.map((record: { id: string }) => record.id)).toContain(id);
  });

  it('is for keys with its scope, whatever applications they reach', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    const scoped = await createKey(owner, { scopes: ['account:read'], applicationIds: [applicationId] });
    expect((await scoped.api.get(LIMITS)).status).toBe(200);
    const unscoped = await createKey(owner, { scopes: ['applications:read', 'files:read'] });
    expect(outcome(await unscoped.api.get(LIMITS))).toBe('403 insufficient_scope');
  });
});

describe('with a limit on applications', () => {
  let instance: OwnInstance;
  let owner: Owner;
  beforeAll(async () => {
    instance = await startOwnInstance({ env: { APPLICATIONS_LIMIT: '2', PLAN_NAME: 'Small' } });
    owner = await signUp(instance.api);
    return () => instance.stop();
  });

  it('an account has so many and no more, however many are asked for at once', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `Application ${i}`);
    const outcomes = (await Promise.all(names.map((name) => owner.session.post(CREATE, { name })))).map(outcome);
    expect(outcomes.toSorted()).toEqual(['200', '200', ...Array(10).fill('413 limit_exceeded')]);
    const { data } = await owner.session.get(LIMITS);
    expect([data.planName, data.createdApplicationsCount]).toEqual(['Small', { currentValue: 2, maxValue: 2 }]);
    const [first] = (await owner.session.get('/api/v1/panel/get-applications')).data;
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: first.id, code: '' });
    expect((await owner.session.post(CREATE, { name: 'One more' })).status).toBe(200);
  });
});
