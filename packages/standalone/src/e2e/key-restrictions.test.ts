import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, signUp } from '../testing/caller.ts';

const PATH = '/api/v1/panel/api-keys';

/** A record is cleared by a queue's next job. */
const CLEAN_UP = { timeoutMs: 15_000 };

let owner: Owner;
beforeAll(async () => {
  owner = await signUp();
});

const outcome = ({ status, code }: Answer) => `${status} ${code}`;
const settings = (api: Api, applicationId: string) => api.get('/api/v1/panel/get-application-settings', { applicationId });
const remove = (applicationId: string) => owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });

async function recordOf({ id }: Key) {
  const { data } = await owner.session.get(PATH);
  return data.find((record: { id: string }) => record.id === id);
}

/** Waits until the key's record lists these applications, and returns it. */
const listed = (key: Key, applicationIds: string[]) =>
  eventually(async () => {
    const record = await recordOf(key);
    expect(record.applicationIds).toEqual(applicationIds);
    return record;
  }, CLEAN_UP);

describe('the record of a key that is restricted to two applications', () => {
  it('loses each once it is deleted, and the key can do what it could', async () => {
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const third = await createApplication(owner.session);
    const key = await createKey(owner, { applicationIds: [first, second] });
    const before = await recordOf(key);
    expect(outcome(await settings(key.api, first))).toBe('200 ');

    await remove(first);
    expect(outcome(await settings(key.api, first))).toBe('404 not_found');
    const { updatedAt, ...record } = await listed(key, [second]);
    expect(updatedAt > before.updatedAt).toBe(true);
    const { lastUsedAt: _at, lastUsedIp: _ip, ...others } = record;
    expect(before).toMatchObject({ ...others, applicationIds: [first, second] });
    const reach = async () => Promise.all([first, second, third].map(async (id) => outcome(await settings(key.api, id))));
    expect(await reach()).toEqual(['404 not_found', '200 ', '403 application_forbidden']);

    await remove(second);
    expect(await listed(key, [])).toMatchObject({ allApplications: false });
    expect(await reach()).toEqual(['404 not_found', '404 not_found', '403 application_forbidden']);
    expect((await key.api.get('/api/v1/panel/get-applications')).data).toEqual([]);
    expect((await key.api.post('/api/v1/panel/create-application', { name: 'One of its own' })).code).toBe(
      'application_forbidden',
    );
  });

  it('can be changed when its list has become empty, and be given no empty one', async () => {
    const [gone, next] = [await createApplication(owner.session), await createApplication(owner.session)];
    const key = await createKey(owner, { applicationIds: [gone] });
    await remove(gone);
    await listed(key, []);
    const change = (body: object) => owner.session.patch(`${PATH}/${key.id}`, body);
    expect((await change({ name: 'Renamed' })).data).toMatchObject({
      name: 'Renamed',
      allApplications: false,
      applicationIds: [],
    });
    expect(outcome(await change({ applicationIds: [] }))).toBe('400 bad_request');
    expect(outcome(await change({ applicationIds: [gone] }))).toBe('404 not_found');
    expect((await change({ applicationIds: [next] })).data.applicationIds).toEqual([next]);
    expect(outcome(await settings(key.api, next))).toBe('200 ');
  });

  it('is left alone by deletions of others’ applications, and by others of its own', async () => {
    const application = await createApplication(owner.session);
    const [watched, untouched] = [await createApplication(owner.session), await createApplication(owner.session)];
    const [key, other] = [
      await createKey(owner, { applicationIds: [watched] }),
      await createKey(owner, { applicationIds: [untouched] }),
    ];
    const before = await recordOf(other);
    await remove(application);
    await remove(watched);
    await listed(key, []);
    expect(await recordOf(other)).toEqual(before);
  });
});
