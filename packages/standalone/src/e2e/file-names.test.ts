import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { createApplication, type Owner, signUp, unique } from '../testing/caller.ts';
import { CHECK_NAME, deleteFile, listNames, outcome, renameFile, UPLOAD, upload } from '../testing/files.ts';

/** Specification 2.5: every way to give a name goes by the same rules. */
let owner: Owner;
let applicationId: string;
let kept: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
  kept = (await upload(owner.session, applicationId, 'kept')).data.id;
});

const check = (fileName: string) => owner.session.post(CHECK_NAME, { fileName }, { applicationId });
const rename = (fileName: string) => renameFile(owner.session, applicationId, kept, fileName);
const names = () => listNames(owner.session, applicationId);

/** The three answers for one name; what was uploaded is deleted again. */
async function tryName(fileName: string): Promise<string[]> {
  const checked = await check(fileName);
  const uploaded = await upload(owner.session, applicationId, fileName, 'x');
  if (uploaded.success) await deleteFile(owner.session, applicationId, uploaded.data.id);
  const renamed = await rename(fileName);
  return [checked, uploaded, renamed].map(outcome);
}

describe('a file name', () => {
  it.each(['a', '7', '_', '-', '--', 'a'.repeat(16), 'aZ09_-', 'a.b', 'a b', 'a.b c.d-e', '1.2.3', 'constructor', '__proto__'])(
    'may be %j',
    async (name) => {
      expect(await tryName(name)).toEqual(['200', '200', '200']);
      expect(await names()).toEqual([name]);
    },
  );

  it.each([
    ['blanks around', '  abc  '],
    ['white space of any kind around', '\t\r\n\u00a0\u3000abc\u2028\u2029\u205f'],
    ['white space around of 20 characters', `${' '.repeat(10)}abc${' '.repeat(10)}`],
    ['zero-width spaces and joiners', '\u200ba\u200cb\u200dc\u2060'],
    ['a byte order mark', '\ufeffabc'],
    ['a soft hyphen', 'a\u00adbc'],
    ['marks of direction', '\u202eabc\u202c\u2066\u2069\u200e'],
    ['NUL and other control characters', '\0a\x01\tb\r\n\x1b\x7f\x9fc'],
    ['characters that tags and variants are made of', 'a\ufe0fb\u{e0041}c'],
    ['invisible characters between blanks around', ' \u200b \u200b abc \u200b '],
  ])('is what is left without %s', async (_what, name) => {
    expect(await tryName(name)).toEqual(['200', '200', '200']);
    expect(await names()).toEqual(['abc']);
    expect(outcome(await upload(owner.session, applicationId, name))).toBe('409 file_name_taken');
    expect(outcome(await check(name))).toBe('409 file_name_taken');
    await rename('kept');
  });

  it('is looked at in its composed form', async () => {
    expect(await tryName('\u212aelvin')).toEqual(['200', '200', '200']);
    expect(await names()).toEqual(['Kelvin']);
    expect(await tryName('e\u0301te\u0301')).toEqual(Array(3).fill('400 VALIDATION_ERROR'));
  });

  it.each([
    '',
    ' ',
    '\u200b',
    '\0',
    '.',
    '..',
    'a'.repeat(17),
    `${'a'.repeat(8)}.${'a'.repeat(8)}`,
    '.a',
    'a.',
    'a..b',
    'a  b',
    'a. b',
    'a .b',
    'a .',
    'a\u200b.\u200b.b',
    'a\u00a0b',
    'a/b',
    'a\\b',
    '../a',
    'a:b',
    'a%b',
    'a+b',
    'a\'b"',
    'ä',
    'ａ',
    'а',
    '😀',
    'a'.repeat(5_000),
  ])('may not be %j', async (name) => {
    const before = await names();
    const answers = await tryName(name);
    expect(answers).toEqual(Array(3).fill('400 VALIDATION_ERROR'));
    expect(await names()).toEqual(before);
  });

  it('may not hold half a surrogate, however it is written', async () => {
    const send = (fileName: string) =>
      owner.session.send('POST', UPLOAD, {
        query: `applicationId=${applicationId}&fileName=${fileName}`,
        body: Buffer.from('x'),
        headers: { 'content-type': 'application/octet-stream' },
      });
    for (const fileName of ['a%ed%a0%80', '%ed%b0%80a', 'a%ff', 'a%', 'a%zz', 'a%c0%80']) {
      expect(outcome(await send(fileName)), fileName).toBe('400 VALIDATION_ERROR');
    }
    expect(outcome(await owner.session.post(CHECK_NAME, String.raw`{"fileName":"a\ud800"}`, { applicationId }))).toBe(
      '400 VALIDATION_ERROR',
    );
    expect(outcome(await send('percent%2D%65ncoded%00'))).toBe('200');
    expect(await names()).toContain('percent-encoded');
  });

  it('is given once', async () => {
    const send = (query: string): Promise<Answer> =>
      owner.session.send('POST', UPLOAD, {
        query,
        body: Buffer.from('x'),
        headers: { 'content-type': 'application/octet-stream' },
      });
    const before = await names();
    const id = `applicationId=${applicationId}`;
    for (const query of [
      id,
      `${id}&fileName=a&fileName=a`,
      `${id}&fileName=a&fileName=b`,
      `${id}&${id}&fileName=a`,
      `${id}&filename=a`,
      `${id}&fileName[]=a`,
      'fileName=a',
    ]) {
      expect(outcome(await send(query)), query).toBe('400 VALIDATION_ERROR');
    }
    expect(await names()).toEqual(before);
  });

  it('is one file’s alone in an application, by its exact text, and may be used in another', async () => {
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const name = unique();
    expect(outcome(await upload(owner.session, first, name))).toBe('200');
    expect(outcome(await upload(owner.session, first, name))).toBe('409 file_name_taken');
    expect(outcome(await upload(owner.session, first, name.toUpperCase()))).toBe('200');
    const { data } = await upload(owner.session, second, name);
    expect(outcome(await upload(owner.session, second, 'other'))).toBe('200');
    expect(outcome(await renameFile(owner.session, second, data.id, 'other'))).toBe('409 file_name_taken');
    expect(outcome(await renameFile(owner.session, second, data.id, name))).toBe('200');
    expect(outcome(await renameFile(owner.session, second, data.id, ` ${name}\u200b`))).toBe('200');
    expect(await listNames(owner.session, second)).toEqual(['other', name]);
  });
});
