import { randomUUID } from 'node:crypto';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { type FilesInstance, startTestFiles, type TestFiles } from '../../testing/test-files.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const NO_UUIDS = ['', 'x', '\0', '\ud800', `${randomUUID()}0`, '{}'];

/** Every call about an application, and those of them about a file. */
const FILE_CALLS: Record<string, (client: FilesInstance['client'], ref: OwnedRef & { fileId: string }) => Promise<unknown>> = {
  renameFile: (client, ref) => client.renameFile({ ...ref, fileName: 'new' }),
  deleteFile: (client, ref) => client.deleteFile(ref),
  createDownloadUrl: (client, ref) => client.createDownloadUrl(ref),
};
const CALLS: typeof FILE_CALLS = {
  ...FILE_CALLS,
  checkFileName: (client, ref) => client.checkFileName({ ...ref, fileName: 'name' }),
  getFilesMetadata: (client, ref) => client.getFilesMetadata(ref),
  listFiles: (client, ref) => client.listFiles(ref),
};

/** Everything of the service in the database. */
async function everything(): Promise<string[]> {
  const tables = ['file', 'file_download_url', 'application_usage', 'object_deletion'];
  const rows = tables.map((table) => `select '${table}' || t::text as row from ${table} t`).join(' union all ');
  const result = await files.db.query(`${rows} order by 1`);
  return result.rows.map(({ row }) => row);
}

describe.each(Object.entries(CALLS))('%s', (_, call) => {
  it('says one thing of applications that are another’s, deleted, unknown or no UUID, and changes nothing', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'name' });
    const deleted = files.createOwned();
    const deletedFile = await storeFile(files, deleted, { name: 'name' });
    files.apps.delete(deleted.applicationId);
    const before = await everything();
    const stranger = { accountId: randomUUID(), applicationId: ref.applicationId, fileId };
    const unknown = [
      { ...ref, fileId, applicationId: randomUUID() },
      ...NO_UUIDS.map((text) => ({ ...ref, fileId, applicationId: text })),
    ];
    const nobody = NO_UUIDS.map((text) => ({ ...ref, fileId, accountId: text }));
    for (const given of [stranger, { ...deleted, fileId: deletedFile }, ...unknown, ...nobody]) {
      expect(await refusalOf(call(files.client, given))).toEqual(NOT_FOUND);
    }
    expect(await everything()).toEqual(before);
  });

  it('fails cleanly while the apps service does not answer, and changes nothing', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'other' });
    const before = await everything();
    files.apps.failWith(new Error('refused by the test'));
    await expect(call(files.client, { ...ref, fileId }))
      .rejects.toThrow()
      .finally(() => files.apps.failWith(undefined));
    expect(await everything()).toEqual(before);
  });

  it('asks the apps service under the id of its request', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'other' });
    const requestId = randomUUID();
    const headers = { 'x-request-id': requestId };
    const client = withHeaders(files.client, headers);
    await call(client, { ...ref, fileId });
    expect(files.apps.requestIds.filter((id) => id === requestId)).toHaveLength(1);
  });
});

describe.each(Object.entries(FILE_CALLS))('%s', (_, call) => {
  it('finds no file of another application, and none that is unknown or no UUID', async () => {
    const ref = files.createOwned();
    const sibling = files.createOwned(ref.accountId);
    const fileId = await storeFile(files, sibling);
    const before = await everything();
    for (const given of [fileId, randomUUID(), ...NO_UUIDS]) {
      expect(await refusalOf(call(files.client, { ...ref, fileId: given }))).toMatchObject({
        reason: 'file_not_found',
        code: 'not_found',
      });
    }
    expect(await everything()).toEqual(before);
  });

  it('knows an id in capitals', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    const { accountId, applicationId } = ref;
    await call(files.client, {
      accountId: accountId.toUpperCase(),
      applicationId: applicationId.toUpperCase(),
      fileId: fileId.toUpperCase(),
    });
  });
});

/** The same client with headers on every call. */
function withHeaders(client: FilesInstance['client'], headers: Record<string, string>): FilesInstance['client'] {
  const methods = Object.entries(client).map(([name, method]) => [
    name,
    (request: never) => (method as (request: never, options: object) => unknown)(request, { headers }),
  ]);
  return Object.fromEntries(methods) as FilesInstance['client'];
}
