import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { deleteFile, listFiles, listNames, METADATA, MIB, outcome, renameFile, TABLE, upload } from '../client/files.ts';
import { openUpload, startUpload } from '../client/running-upload.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';

/** Objects of an application are deleted by a queue's next job. */
const CLEAN_UP = { timeoutMs: 15_000 };
const LIMITS = '/api/v1/panel/get-account-limits';
const CREATE = '/api/v1/panel/create-application';
const ALLOWANCE_MIB = 6;
const FILE_COUNT = 4;

let api: Api;
beforeAll(async () => {
  api = (await signUp()).session;
});

const { objectsDir } = inject('latchkeyInstance');
const objectsOf = (dir: string, applicationId: string): Promise<string[]> =>
  readdir(join(dir, 'objects', applicationId)).catch(() => []);
const remove = (session: Api, applicationId: string) =>
  session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });

describe('deleting', () => {
  it('a file removes its bytes, frees its name and leaves the others', async () => {
    const id = await createApplication(api);
    const [first, second] = [(await upload(api, id, 'first')).data.id, (await upload(api, id, 'second')).data.id];
    expect((await objectsOf(objectsDir, id)).sort()).toEqual([first, second].sort());
    expect(outcome(await deleteFile(api, id, first))).toBe('200');
    await eventually(async () => expect(await objectsOf(objectsDir, id)).toEqual([second]), CLEAN_UP);
    expect(await readFile(join(objectsDir, 'objects', id, second), 'utf8')).toBe('second');
    expect((await upload(api, id, 'first', 'other bytes')).data.id).not.toBe(first);
    expect(await listNames(api, id)).toEqual(['first', 'second']);
  });

  it('an application makes its files unknown on the next request, and removes their objects', async () => {
    const id = await createApplication(api);
    const file = (await upload(api, id, 'a-file')).data.id;
    const running = await startUpload(api, { applicationId: id, fileName: 'doomed' });
    await running.send(Buffer.alloc(300_000));
    expect(outcome(await remove(api, id))).toBe('200');
    expect(outcome(await running.finish())).toBe('404 not_found');
    const table = [
      await api.get(TABLE, { applicationId: id }),
      await api.get(METADATA, { applicationId: id }),
      await upload(api, id, 'another'),
    ];
    const actions = [await deleteFile(api, id, file), await renameFile(api, id, file, 'renamed')];
    expect([...table, ...actions].map(outcome)).toEqual(Array(5).fill('404 not_found'));
    await eventually(async () => {
      expect(await readdir(join(objectsDir, 'objects'))).not.toContain(id);
      expect((await readdir(join(objectsDir, 'tmp'))).filter((name) => name.includes(id))).toEqual([]);
    }, CLEAN_UP);
  });
});

it('get-account-limits reports what the account has and may have, to a key and to a session', async () => {
  const owner = await signUp();
  const { api: key } = await createKey(owner, {
    scopes: ['account:read'],
    applicationIds: [await createApplication(owner.session)],
  });
  const { status, data, message } = await key.get(LIMITS);
  expect([status, message]).toEqual([200, 'Successfully fetched account limits']);
  expect(data).toEqual({
    planName: 'Self-hosted',
    storageSizeMib: { currentValue: 0, maxValue: 1_024 },
    uploadedFilesCount: { currentValue: 0, maxValue: 100 },
    createdApplicationsCount: { currentValue: 1, maxValue: 200 },
    apiKeyCount: { currentValue: 1, maxValue: 20 },
    fileSizeMiB: 150,
  });
  const { session } = owner;
  const [first, second] = [await createApplication(session), await createApplication(session)];
  for (const [id, name, size] of [
    [first, 'small', 1],
    [first, 'large', 3 * MIB - 1],
    [second, 'other', 1],
  ] as const)
    await upload(session, id, name, Buffer.alloc(size));
  const values = async () =>
    Object.values((await session.get(LIMITS)).data).flatMap((value) => (value as { currentValue?: number }).currentValue ?? []);
  expect(await values()).toEqual([4, 3, 3, 1]);
  await remove(session, second);
  expect(await values()).toEqual([3, 2, 2, 1]);
});

describe('an account has no more than its limits', () => {
  let instance: DedicatedInstance;
  beforeAll(async () => {
    const files = {
      STORAGE_ALLOWANCE_MIB: String(ALLOWANCE_MIB),
      FILE_COUNT_LIMIT: String(FILE_COUNT),
      FILE_SIZE_LIMIT_MIB: '5',
    };
    instance = await startDedicatedInstance({ env: { ...files, APPLICATIONS_LIMIT: '2' } });
    return () => instance.stop();
  });
  const zeros = (byteSize: number) => new Uint8Array(byteSize);

  async function createOwner(): Promise<{ owner: Owner; session: Api; first: string; second: string }> {
    const owner = await signUp(instance.api);
    const { session } = owner;
    return { owner, session, first: await createApplication(session), second: await createApplication(session) };
  }

  it('of applications, however many are created at the same time', async () => {
    const { session } = await signUp(instance.api);
    const create = () => session.post(CREATE, { name: 'Application' });
    const outcomes = (await Promise.all(Array.from({ length: 12 }, create))).map(outcome);
    expect(outcomes.toSorted()).toEqual(['200', '200', ...Array(10).fill('413 limit_exceeded')]);
    expect((await session.get(LIMITS)).data).toMatchObject({
      planName: 'Self-hosted',
      createdApplicationsCount: { currentValue: 2, maxValue: 2 },
    });
    await remove(session, (await session.get('/api/v1/panel/get-applications')).data[0].id);
    expect(outcome(await create())).toBe('200');
  });

  it('of storage, charged in whole MiB rounded down, at least one, over all its applications', async () => {
    const { session, first, second } = await createOwner();
    const put = async (id: string, name: string, size: number) => outcome(await upload(session, id, name, zeros(size)));
    expect(await put(first, 'one-byte', 1)).toBe('200');
    expect(await put(second, 'almost-five', 5 * MIB - 1)).toBe('200');
    // One and four are charged: a file that is charged one fits, and no other.
    expect(await put(first, 'two', 2 * MIB)).toBe('413 limit_exceeded');
    expect(await put(first, 'almost-two', 2 * MIB - 1)).toBe('200');
    expect(await put(second, 'more', 1)).toBe('413 limit_exceeded');
    await deleteFile(session, second, (await listFiles(session, second))[0]?.id ?? '');
    expect(await put(first, 'four', 5 * MIB - 1)).toBe('200');
    await remove(session, first);
    expect(await put(second, 'five', 5 * MIB)).toBe('200');
    await eventually(async () => expect(await objectsOf(instance.objectsDir, first)).toEqual([]), CLEAN_UP);
  });

  it('of storage, checked while a body of unknown size is read, and before one of known size is asked for', async () => {
    const { session, first: applicationId } = await createOwner();
    await upload(session, applicationId, 'four', zeros(4 * MIB));
    const running = await startUpload(session, { applicationId, fileName: 'grows' });
    await running.send(zeros(3 * MIB));
    expect(outcome(await running.answer)).toBe('413 limit_exceeded');
    running.request.destroy();
    const said = openUpload(session, { applicationId, fileName: 'three', headers: { 'content-length': String(3 * MIB) } });
    let asked = false;
    said.request.once('continue', () => {
      asked = true;
    });
    expect([outcome(await said.answer), asked]).toEqual(['413 limit_exceeded', false]);
    said.request.destroy();
    const fits = await startUpload(session, { applicationId, fileName: 'grows' });
    await fits.send(zeros(3 * MIB - 1));
    expect(outcome(await fits.finish())).toBe('200');
  });

  it('of files, over all its applications, also of forty uploads at the same time by its keys and sessions', async () => {
    const { owner, session, first, second } = await createOwner();
    const callers = [session, (await createKey(owner)).api];
    // Sent again while another upload of the account is running.
    const put = (i: number): Promise<Answer> =>
      eventually(
        async () => {
          const answer = await upload(callers[i % 2] as Api, i % 3 ? first : second, `file-${i}`);
          if (answer.status === 429) throw new Error('another upload is running');
          return answer;
        },
        { timeoutMs: 45_000, intervalMs: 50 },
      );
    const outcomes = (await Promise.all(Array.from({ length: 40 }, (_, i) => put(i)))).map(outcome);
    expect(outcomes.toSorted()).toEqual([...Array(FILE_COUNT).fill('200'), ...Array(40 - FILE_COUNT).fill('413 limit_exceeded')]);
    const [file] = [
      ...(await listFiles(session, first)).map(({ id }) => [first, id]),
      ...(await listFiles(session, second)).map(({ id }) => [second, id]),
    ];
    await deleteFile(session, file?.[0] ?? '', file?.[1] ?? '');
    expect([outcome(await put(50)), outcome(await put(51))]).toEqual(['200', '413 limit_exceeded']);
  });
});
