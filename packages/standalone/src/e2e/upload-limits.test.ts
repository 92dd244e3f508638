import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Owner, signUp } from '../testing/caller.ts';
import { deleteFile, listFiles, METADATA, MIB, outcome, upload } from '../testing/files.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { openUpload, startUpload } from '../testing/running-upload.ts';

const ALLOWANCE_MIB = 6;
const FILE_COUNT = 4;

/** Objects of an application go with a queue’s next job. */
const CLEAN_UP = { timeoutMs: 15_000 };

let instance: OwnInstance;
beforeAll(async () => {
  instance = await startOwnInstance({
    env: { STORAGE_ALLOWANCE_MIB: String(ALLOWANCE_MIB), FILE_COUNT_LIMIT: String(FILE_COUNT), FILE_SIZE_LIMIT_MIB: '5' },
  });
});
afterAll(() => instance.stop());

const chargeOf = (byteSize: number) => Math.max(1, Math.floor(byteSize / MIB));
const zeros = (byteSize: number) => new Uint8Array(byteSize);

async function createOwner(): Promise<{ owner: Owner; api: Api; applicationId: string }> {
  const owner = await signUp(instance.api);
  return { owner, api: owner.session, applicationId: await createApplication(owner.session) };
}

/** What the files of some applications come to. */
async function usageOf(api: Api, applicationIds: readonly string[]): Promise<{ files: number; mib: number }> {
  const files = (await Promise.all(applicationIds.map((id) => listFiles(api, id)))).flat();
  return { files: files.length, mib: files.reduce((sum, { byteSize }) => sum + chargeOf(byteSize), 0) };
}

describe('the storage allowance', () => {
  it('is charged in whole MiB rounded down, at least one, over all applications of the account', async () => {
    const { api, applicationId: first } = await createOwner();
    const second = await createApplication(api);
    expect(outcome(await upload(api, first, 'one-byte', 'x'))).toBe('200');
    expect(outcome(await upload(api, second, 'almost-five', zeros(5 * MIB - 1)))).toBe('200');
    // One and four are charged: a file that is charged one fits, and no other.
    expect(outcome(await upload(api, first, 'two', zeros(2 * MIB)))).toBe('413 limit_exceeded');
    expect(outcome(await upload(api, first, 'almost-two', zeros(2 * MIB - 1)))).toBe('200');
    expect(outcome(await upload(api, second, 'more', 'x'))).toBe('413 limit_exceeded');
    expect(await usageOf(api, [first, second])).toEqual({ files: 3, mib: ALLOWANCE_MIB });
  });

  it('is looked at while a body of unknown size is read, and nothing of it is kept', async () => {
    const { api, applicationId } = await createOwner();
    await upload(api, applicationId, 'four', zeros(4 * MIB));
    const running = await startUpload(api, { applicationId, fileName: 'grows' });
    await running.send(zeros(3 * MIB - 1));
    await running.send(zeros(1));
    expect(outcome(await running.answer)).toBe('413 limit_exceeded');
    running.request.destroy();
    const fits = await startUpload(api, { applicationId, fileName: 'grows' });
    await fits.send(zeros(3 * MIB - 1));
    expect(outcome(await fits.finish())).toBe('200');
  });

  it('refuses a size that does not fit before the body is asked for', async () => {
    const { api, applicationId } = await createOwner();
    await upload(api, applicationId, 'four', zeros(4 * MIB));
    const running = openUpload(api, { applicationId, fileName: 'three', headers: { 'content-length': String(3 * MIB) } });
    let asked = false;
    running.request.once('continue', () => {
      asked = true;
    });
    expect([outcome(await running.answer), asked]).toEqual(['413 limit_exceeded', false]);
    running.request.destroy();
  });

  it('is free again as soon as a file or an application is deleted, and the objects go too', async () => {
    const { owner, api, applicationId: first } = await createOwner();
    const second = await createApplication(api);
    const { data } = await upload(api, first, 'five', zeros(5 * MIB));
    const object = join(instance.objectsDir, 'objects', first, data.id);
    expect(await readdir(join(object, '..'))).toEqual([data.id]);
    expect(outcome(await upload(api, second, 'five', zeros(5 * MIB)))).toBe('413 limit_exceeded');
    expect(outcome(await deleteFile(api, first, data.id))).toBe('200');
    expect(outcome(await upload(api, second, 'five', zeros(5 * MIB)))).toBe('200');
    await eventually(async () => expect(await objectsOf(first)).toEqual([]), CLEAN_UP);

    expect(outcome(await upload(api, first, 'five', zeros(5 * MIB)))).toBe('413 limit_exceeded');
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: second, code: '' });
    expect(outcome(await upload(api, first, 'five', zeros(5 * MIB)))).toBe('200');
    expect(outcome(await api.get(METADATA, { applicationId: second }))).toBe('404 not_found');
    await eventually(async () => expect(await objectsOf(second)).toEqual([]), CLEAN_UP);
    expect(await objectsOf(first)).toHaveLength(1);
  });
});

/** Names of the objects of an application on the disk. */
async function objectsOf(applicationId: string): Promise<string[]> {
  return readdir(join(instance.objectsDir, 'objects', applicationId)).catch(() => []);
}

describe('the number of files', () => {
  it('is bounded over all applications of the account, and deleting makes room at once', async () => {
    const { api, applicationId: first } = await createOwner();
    const second = await createApplication(api);
    const ids = [];
    for (let i = 0; i < FILE_COUNT; i += 1) ids.push((await upload(api, i % 2 ? first : second, `file-${i}`)).data.id);
    expect(outcome(await upload(api, first, 'another'))).toBe('413 limit_exceeded');
    expect(outcome(await deleteFile(api, second, ids[0]))).toBe('200');
    expect(outcome(await upload(api, first, 'another'))).toBe('200');
    expect(outcome(await upload(api, second, 'and-another'))).toBe('413 limit_exceeded');
    const other = await createOwner();
    expect(outcome(await upload(other.api, other.applicationId, 'fine'))).toBe('200');
  });
});

describe('a hundred uploads at once by sessions and keys of one account', () => {
  it.each([
    ['the number of files', 1, FILE_COUNT],
    ['the allowance', 2 * MIB, ALLOWANCE_MIB / 2],
  ])(
    'never exceed %s, and use it up',
    async (_what, byteSize, expected) => {
      const { owner, api, applicationId: first } = await createOwner();
      const applications = [first, await createApplication(api)];
      const callers = [api, (await createKey(owner)).api, (await createKey(owner)).api, await signInAgain(owner)];
      const content = zeros(byteSize);
      // Refused because another upload runs, it is tried again until the outcome is the account’s own.
      const tryOn = async (index: number): Promise<Answer> => {
        const caller = callers[index % callers.length] as Api;
        const at = applications[index % 2] as string;
        return eventually(
          async () => {
            const answer = await upload(caller, at, `file-${index}`, content);
            if (answer.status === 429) throw new Error('another upload is under way');
            return answer;
          },
          { timeoutMs: 45_000, intervalMs: 50 },
        );
      };
      let running = true;
      const watch = async () => {
        while (running) {
          const { files, mib } = await usageOf(api, applications);
          expect(files <= FILE_COUNT && mib <= ALLOWANCE_MIB, `${files} files, ${mib} MiB`).toBe(true);
        }
      };
      const watching = watch();
      const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => tryOn(index))).finally(() => {
        running = false;
      });
      await watching;
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(expected);
      expect(answers.filter((answer) => outcome(answer) === '413 limit_exceeded')).toHaveLength(100 - expected);
      expect((await usageOf(api, applications)).files).toBe(expected);
    },
    60_000,
  );
});

async function signInAgain({ email, password }: Owner): Promise<Api> {
  const { headers, data } = await instance.api.post('/api/v1/auth/sign-in', { email, password });
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';', 1);
  return instance.api.with({ cookie, 'x-csrf-token': data.csrfToken });
}
