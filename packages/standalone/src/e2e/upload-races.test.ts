import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, inject, it } from 'vitest';
import type { Api } from '../testing/api.ts';
import { cookieOf, createApplication, createKey, type Owner, sharedApi, signUp, unique } from '../testing/caller.ts';
import { ACTION, deleteFile, findFileId, listFiles, METADATA, outcome, renameFile, TABLE, upload } from '../testing/files.ts';
import { startUpload } from '../testing/running-upload.ts';

async function createOwner(): Promise<{ owner: Owner; api: Api; applicationId: string }> {
  const owner = await signUp();
  return { owner, api: owner.session, applicationId: await createApplication(owner.session) };
}

async function signInAgain({ email, password }: Owner): Promise<Api> {
  const { headers, data } = await sharedApi().post('/api/v1/auth/sign-in', { email, password });
  return sharedApi().with({ cookie: cookieOf(headers), 'x-csrf-token': data.csrfToken });
}

const SETTINGS = '/api/v1/panel/get-application-settings';
/** Objects of an application go with a queue’s next job. */
const CLEAN_UP = { timeoutMs: 15_000 };

describe('while an upload of an account is under way', () => {
  it('no other of that account begins, by whatever key or session, and it is told when to come back', async () => {
    const { owner, api, applicationId } = await createOwner();
    const running = await startUpload(api, { applicationId, fileName: 'first' });
    const other = await createApplication(api);
    const callers = [
      api,
      (await createKey(owner)).api,
      (await createKey(owner, { applicationIds: [other] })).api,
      await signInAgain(owner),
    ];
    for (const caller of callers) {
      const answer = await upload(caller, other, unique());
      expect(outcome(answer)).toBe('429 rate_limit_reached');
      const { headers } = answer;
      expect(headers.get('ratelimit-policy')).toBe('"uploads-at-once";q=1;w=180');
      expect(headers.get('ratelimit')).toBe(`"uploads-at-once";r=0;t=${headers.get('retry-after')}`);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(180);
    }
    await running.send(Buffer.from('first'));
    expect(outcome(await running.finish())).toBe('200');
    for (const [index, caller] of callers.entries()) expect(outcome(await upload(caller, other, `after-${index}`))).toBe('200');
  });

  it('nobody else is hindered, nor is the account in anything else', async () => {
    const slow = await Promise.all(Array.from({ length: 8 }, createOwner));
    const running = await Promise.all(
      slow.map(({ api, applicationId }) => startUpload(api, { applicationId, fileName: 'slow' })),
    );
    await Promise.all(running.map((one) => one.send(Buffer.alloc(100_000))));
    const { api, applicationId } = await createOwner();
    const startedAt = performance.now();
    for (let i = 0; i < 10; i += 1) {
      expect(outcome(await upload(api, applicationId, `quick-${i}`))).toBe('200');
      for (const one of [{ api, applicationId }, slow[i % slow.length] as (typeof slow)[number]]) {
        expect(outcome(await one.api.get(SETTINGS, { applicationId: one.applicationId }))).toBe('200');
        expect(outcome(await one.api.get(TABLE, { applicationId: one.applicationId }))).toBe('200');
      }
    }
    // A pool, a queue or a lock that slow uploads hold would make it wait until they end, which they don’t.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect((await Promise.all(running.map((one) => one.finish()))).map(outcome)).toEqual(Array(8).fill('200'));
  });

  it('deleting its application makes it fail, and leaves nothing of it', async () => {
    const { owner, api, applicationId } = await createOwner();
    const other = await createApplication(api);
    const running = await startUpload(api, { applicationId, fileName: 'doomed' });
    await running.send(Buffer.alloc(300_000));
    const deletion = { applicationId, code: '' };
    expect(outcome(await owner.session.delete('/api/v1/panel/delete-application', deletion))).toBe('200');
    expect(outcome(await running.finish())).toBe('404 not_found');
    const { objectsDir } = inject('latchkeyInstance');
    await eventually(async () => {
      expect(await readdir(join(objectsDir, 'objects', applicationId)).catch(() => [])).toEqual([]);
      expect((await readdir(join(objectsDir, 'tmp'))).filter((name) => name.includes(applicationId))).toEqual([]);
    }, CLEAN_UP);
    expect(outcome(await upload(api, other, 'doomed'))).toBe('200');
  });

  it('the name that it will have may be taken by a rename, and then it fails', async () => {
    const { api, applicationId } = await createOwner();
    const { data } = await upload(api, applicationId, 'before');
    const running = await startUpload(api, { applicationId, fileName: 'wanted' });
    expect(outcome(await renameFile(api, applicationId, data.id, 'wanted'))).toBe('200');
    await running.send(Buffer.from('late'));
    expect(outcome(await running.finish())).toBe('409 file_name_taken');
    expect((await listFiles(api, applicationId)).map(({ id }) => id)).toEqual([data.id]);
  });
});

describe('at once', () => {
  it('fifty uploads of one name leave one file', async () => {
    const { owner, api, applicationId } = await createOwner();
    const callers = [api, (await createKey(owner)).api, await signInAgain(owner)];
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => upload(callers[i % 3] as Api, applicationId, 'one-name', `content ${i}`)),
    );
    const stored = answers.filter(({ status }) => status === 200);
    expect(stored).toHaveLength(1);
    const others = new Set(answers.map(outcome).filter((text) => text !== '200'));
    for (const text of others) expect(['429 rate_limit_reached', '409 file_name_taken']).toContain(text);
    const [row, ...more] = await listFiles(api, applicationId);
    expect([row?.id, row?.checksum, more]).toEqual([stored[0]?.data.id, stored[0]?.data.checksum, []]);
  });

  it('renames to one name leave one file with it', async () => {
    const { api, applicationId } = await createOwner();
    const ids: string[] = [];
    for (let i = 0; i < 8; i += 1) ids.push((await upload(api, applicationId, `file-${i}`)).data.id);
    const answers = await Promise.all(ids.map((id) => renameFile(api, applicationId, id, 'the-one')));
    expect(answers.map(outcome).sort()).toEqual(['200', ...Array(7).fill('409 file_name_taken')]);
    const names = (await listFiles(api, applicationId)).map(({ displayName }) => displayName);
    expect(names.filter((name) => name === 'the-one')).toHaveLength(1);
  });

  it('deletions of one file succeed once', async () => {
    const { api, applicationId } = await createOwner();
    const { data } = await upload(api, applicationId, 'short-lived');
    const answers = await Promise.all(Array.from({ length: 10 }, () => deleteFile(api, applicationId, data.id)));
    expect(answers.map(outcome).sort()).toEqual(['200', ...Array(9).fill('404 not_found')]);
    expect((await api.get(METADATA, { applicationId })).data.totalFiles).toBe(0);
  });

  it('uploads, renames, deletions and tables agree at the end, and none of them fails', async () => {
    const { api, applicationId } = await createOwner();
    const allowed = ['200', '404 not_found', '409 file_name_taken', '429 rate_limit_reached'];
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const worker = async (seed: number) => {
      for (let i = 0; i < 12; i += 1) {
        const name = names[(seed * 5 + i) % names.length] as string;
        const other = names[(seed + i * 3) % names.length] as string;
        if (seed % 4 === 0) {
          expect(allowed).toContain(outcome(await upload(api, applicationId, name)));
          continue;
        }
        const [file] = (await api.get(TABLE, { applicationId })).data as Array<{ id: string }>;
        if (!file) continue;
        const answer = await (seed % 4 === 1
          ? deleteFile(api, applicationId, file.id)
          : renameFile(api, applicationId, file.id, other));
        expect(allowed).toContain(outcome(answer));
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, seed) => worker(seed)));
    const files = await listFiles(api, applicationId);
    expect((await api.get(METADATA, { applicationId })).data.totalFiles).toBe(files.length);
    expect(new Set(files.map(({ displayName }) => displayName)).size).toBe(files.length);
    expect((await upload(api, applicationId, 'afterwards')).status).toBe(200);
  });
});

describe('a file of another account', () => {
  it('is as unknown as one that never existed, in an own application and in its own', async () => {
    const [mine, theirs] = await Promise.all([createOwner(), createOwner()]);
    const { data } = await upload(theirs.api, theirs.applicationId, 'private');
    const before = await listFiles(theirs.api, theirs.applicationId);
    const second = await createApplication(theirs.api);
    const never = '01900000-0000-7000-8000-00000000dead';
    const act = async (api: Api, applicationId: string, fileId: string, action: string) => {
      const { status, text } = await api.post(ACTION, { action, fileId, fileName: 'stolen' }, { applicationId });
      return { status, text };
    };
    for (const action of ['delete_file', 'change_file_name']) {
      const unknown = await act(mine.api, mine.applicationId, never, action);
      expect(unknown.status).toBe(404);
      for (const fileId of [data.id, data.id.toUpperCase(), 'abc', '', '\0', `${data.id} `, theirs.applicationId]) {
        expect(await act(mine.api, mine.applicationId, fileId, action), fileId).toEqual(unknown);
      }
      expect(await act(mine.api, theirs.applicationId, data.id, action)).toEqual(unknown);
      // Nor is it reached through another application of its own account.
      expect(await act(theirs.api, second, data.id, action)).toEqual(unknown);
    }
    expect(await listFiles(theirs.api, theirs.applicationId)).toEqual(before);
    expect(await findFileId(theirs.api, theirs.applicationId, 'private')).toBe(data.id);
  });
});
