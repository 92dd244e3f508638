import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, type Owner, signUp, unique } from '../testing/caller.ts';
import { CHECK_NAME, deleteFile, listNames, outcome, renameFile, UPLOAD, upload } from '../testing/files.ts';

/** Specification 2.5: the same rules for every route that takes a file name. */
let owner: Owner;
let applicationId: string;
let kept: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
  kept = (await upload(owner.session, applicationId, 'kept')).data.id;
});

const check = (fileName: string) => owner.session.post(CHECK_NAME, { fileName }, { applicationId });
const names = () => listNames(owner.session, applicationId);
const send = (query: string) =>
  owner.session.send('POST', UPLOAD, { query, body: Buffer.from('x'), headers: { 'content-type': 'application/octet-stream' } });

/** The responses of check, upload and rename; what was uploaded is deleted again. */
async function tryName(fileName: string): Promise<string[]> {
  const checked = await check(fileName);
  const uploaded = await upload(owner.session, applicationId, fileName, 'x');
  if (uploaded.success) await deleteFile(owner.session, applicationId, uploaded.data.id);
  const renamed = await renameFile(owner.session, applicationId, kept, fileName);
  return [checked, uploaded, renamed].map(outcome);
}

describe('a file name', () => {
  it.each([
    ['a b.c-d_9', 'a b.c-d_9'],
    [' \u200ba\u00adbc\0 ', 'abc'],
  ])('%j is stored as %j by every route', async (name, stored) => {
    expect(await tryName(name)).toEqual(['200', '200', '200']);
    expect(await names()).toEqual([stored]);
    expect(outcome(await check(name))).toBe('409 file_name_taken');
  });

  it.each(['..', 'a'.repeat(17), 'ä'])('may not be %j at any route', async (name) => {
    const before = await names();
    expect(await tryName(name)).toEqual(Array(3).fill('400 VALIDATION_ERROR'));
    expect(await names()).toEqual(before);
  });

  it('is given once, in UTF-8', async () => {
    const id = `applicationId=${applicationId}`;
    const bytes = ['a%ed%a0%80', '%ed%b0%80a', 'a%ff', 'a%', 'a%zz', 'a%c0%80'].map((name) => `${id}&fileName=${name}`);
    const given = ['', '&fileName=a&fileName=a', '&fileName=a&fileName=b', `&${id}&fileName=a`, '&filename=a', '&fileName[]=a'];
    for (const query of [...bytes, ...given.map((more) => id + more), 'fileName=a'])
      expect(outcome(await send(query)), query).toBe('400 VALIDATION_ERROR');
    const half = await owner.session.post(CHECK_NAME, String.raw`{"fileName":"a\ud800"}`, { applicationId });
    expect(outcome(half)).toBe('400 VALIDATION_ERROR');
    expect(outcome(await send(`${id}&fileName=percent%2D%65ncoded%00`))).toBe('200');
    expect(await names()).toContain('percent-encoded');
  });

  it('is unique in an application, by its exact text', async () => {
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const name = unique();
    const put = async (id: string, fileName: string) => upload(owner.session, id, fileName);
    expect(outcome(await put(first, name))).toBe('200');
    expect(outcome(await put(first, name))).toBe('409 file_name_taken');
    expect(outcome(await put(first, name.toUpperCase()))).toBe('200');
    const { data } = await put(second, name);
    expect(outcome(await put(second, 'other'))).toBe('200');
    expect(outcome(await renameFile(owner.session, second, data.id, 'other'))).toBe('409 file_name_taken');
    for (const same of [name, ` ${name}\u200b`])
      expect(outcome(await renameFile(owner.session, second, data.id, same))).toBe('200');
    expect(await listNames(owner.session, second)).toEqual(['other', name]);
  });
});
