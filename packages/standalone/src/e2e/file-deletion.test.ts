import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api, Body } from '../testing/api.ts';
import { createApplication, createKey, type Owner, SCOPES, signUp } from '../testing/caller.ts';
import { ACTION, deleteFile, listFiles, listNames, METADATA, outcome, renameFile, TABLE, upload } from '../testing/files.ts';

/** Objects of an application go with a queue’s next job. */
const CLEAN_UP = { timeoutMs: 15_000 };

let owner: Owner;
let api: Api;
beforeAll(async () => {
  owner = await signUp();
  api = owner.session;
});

const { objectsDir } = inject('latchkeyInstance');
const folderOf = (applicationId: string) => join(objectsDir, 'objects', applicationId);
const objectsOf = (applicationId: string): Promise<string[]> => readdir(folderOf(applicationId)).catch(() => []);

describe('deleting a file', () => {
  it('removes its bytes, frees its name and leaves the others', async () => {
    const id = await createApplication(api);
    const first = (await upload(api, id, 'first', 'bytes of the first')).data.id;
    const second = (await upload(api, id, 'second', 'bytes of the second')).data.id;
    expect((await objectsOf(id)).sort()).toEqual([first, second].sort());
    expect(outcome(await deleteFile(api, id, first))).toBe('200');
    await eventually(async () => expect(await objectsOf(id)).toEqual([second]), CLEAN_UP);
    expect(await readFile(join(folderOf(id), second), 'utf8')).toBe('bytes of the second');
    const again = await upload(api, id, 'first', 'other bytes');
    expect(again.data.id).not.toBe(first);
    expect(await listNames(api, id)).toEqual(['first', 'second']);
    expect((await api.get(METADATA, { applicationId: id })).data.totalFiles).toBe(2);
  });

  it('needs its own scope, which uploading does not bring', async () => {
    const id = await createApplication(api);
    const { data } = await upload(api, id, 'kept');
    const { api: uploader } = await createKey(owner, { scopes: SCOPES.filter((scope) => scope !== 'files:delete') });
    expect(outcome(await deleteFile(uploader, id, data.id))).toBe('403 insufficient_scope');
    expect(outcome(await renameFile(uploader, id, data.id, 'changed'))).toBe('403 insufficient_scope');
    const { api: deleter } = await createKey(owner, { scopes: ['files:delete'] });
    expect(outcome(await renameFile(deleter, id, data.id, 'changed'))).toBe('200');
    expect(outcome(await deleteFile(deleter, id, data.id))).toBe('200');
    expect(outcome(await deleter.get(TABLE, { applicationId: id }))).toBe('403 insufficient_scope');
  });
});

describe('deleting an application', () => {
  it('makes its files unknown at once, and then removes them', async () => {
    const id = await createApplication(api);
    const files = [];
    for (let i = 0; i < 12; i += 1) files.push((await upload(api, id, `file-${i}`)).data.id);
    expect(await objectsOf(id)).toHaveLength(12);
    expect(outcome(await api.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' }))).toBe('200');
    const answers = [
      await api.get(TABLE, { applicationId: id }),
      await api.get(METADATA, { applicationId: id }),
      await upload(api, id, 'another'),
      await deleteFile(api, id, files[0]),
      await renameFile(api, id, files[0], 'renamed'),
    ];
    expect(answers.map(outcome)).toEqual(Array(5).fill('404 not_found'));
    await eventually(async () => expect(await readdir(join(objectsDir, 'objects'))).not.toContain(id), CLEAN_UP);
  });

  it('makes room for as many files as it had', async () => {
    const other = await signUp();
    const [full, next] = [await createApplication(other.session), await createApplication(other.session)];
    for (let i = 0; i < 100; i += 1) expect((await upload(other.session, full, `file-${i}`, 'x')).status).toBe(200);
    expect(outcome(await upload(other.session, next, 'one-more'))).toBe('413 limit_exceeded');
    await other.session.delete('/api/v1/panel/delete-application', { applicationId: full, code: '' });
    expect(outcome(await upload(other.session, next, 'one-more'))).toBe('200');
    await eventually(async () => expect(await objectsOf(full)).toEqual([]), CLEAN_UP);
  });
});

describe('file-action', () => {
  let applicationId: string;
  let fileId: string;
  beforeAll(async () => {
    applicationId = await createApplication(api);
    fileId = (await upload(api, applicationId, 'original')).data.id;
  });
  const act = (body: Body): Promise<Answer> => api.post(ACTION, body, { applicationId });

  it.each([
    ['no action', (id: string) => ({ fileId: id })],
    ['an unknown action', (id: string) => ({ action: 'copy_file', fileId: id })],
    ['an action in capitals', (id: string) => ({ action: 'DELETE_FILE', fileId: id })],
    ['an action that is no text', (id: string) => ({ action: ['delete_file'], fileId: id })],
    ['no file', () => ({ action: 'delete_file' })],
    ['a file that is no text', () => ({ action: 'delete_file', fileId: 1 })],
    ['several files', (id: string) => ({ action: 'delete_file', fileId: [id] })],
    ['something else', (id: string) => ({ action: 'delete_file', fileId: id, force: true })],
    ['the application in the body', (id: string) => ({ action: 'delete_file', fileId: id, applicationId })],
    ['a name that is no text', (id: string) => ({ action: 'change_file_name', fileId: id, fileName: 1 })],
    ['no name, said as null', (id: string) => ({ action: 'change_file_name', fileId: id, fileName: null })],
    ['a name that is none', (id: string) => ({ action: 'change_file_name', fileId: id, fileName: '..' })],
  ])('refuses %s, and changes nothing', async (_what, body) => {
    expect(outcome(await act(body(fileId)))).toBe('400 VALIDATION_ERROR');
    expect(await listNames(api, applicationId)).toEqual(['original']);
  });

  it('refuses a rename without a name as not fitting, and changes nothing', async () => {
    expect(outcome(await act({ action: 'change_file_name', fileId }))).toBe('400 bad_request');
    expect(await listNames(api, applicationId)).toEqual(['original']);
  });

  it('does not find what is no file', async () => {
    for (const unknown of [
      '01900000-0000-7000-8000-00000000dead',
      'abc',
      '',
      '\0',
      '😀',
      applicationId,
      `${fileId}x`,
      'x'.repeat(60_000),
    ]) {
      for (const action of ['delete_file', 'change_file_name']) {
        expect(outcome(await act({ action, fileId: unknown, fileName: 'renamed' })), unknown).toBe('404 not_found');
      }
    }
    expect(await listNames(api, applicationId)).toEqual(['original']);
  });

  it('finds a file by its id in capitals, and leaves all but the name', async () => {
    const [before] = await listFiles(api, applicationId);
    expect(outcome(await act({ action: 'change_file_name', fileId: fileId.toUpperCase(), fileName: 'renamed' }))).toBe('200');
    expect(await listFiles(api, applicationId)).toEqual([{ ...before, displayName: 'renamed' }]);
    expect(outcome(await act({ action: 'delete_file', fileId: fileId.toUpperCase() }))).toBe('200');
    expect(await listFiles(api, applicationId)).toEqual([]);
  });
});
