import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { type FilesInstance, useTestFiles } from '../../testing/test-files.ts';
import { reasonOf } from '../../testing/uploads.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';

const files = useTestFiles();

const NO_UUIDS = ['', '\0', '\ud800', `${randomUUID()}0`];

type Call = (
  client: FilesInstance['client'],
  ref: OwnedRef & { fileId: string },
  headers?: Record<string, string>,
) => Promise<unknown>;
const FILE_CALLS: Record<string, Call> = {
  renameFile: (client, ref, headers) => client.renameFile({ ...ref, fileName: 'new' }, headers && { headers }),
  deleteFile: (client, ref, headers) => client.deleteFile(ref, headers && { headers }),
  createDownloadUrl: (client, ref, headers) => client.createDownloadUrl(ref, headers && { headers }),
};
const CALLS: typeof FILE_CALLS = {
  ...FILE_CALLS,
  checkFileName: (client, ref, headers) => client.checkFileName({ ...ref, fileName: 'name' }, headers && { headers }),
  getFilesMetadata: (client, ref, headers) => client.getFilesMetadata(ref, headers && { headers }),
  listFiles: (client, ref, headers) => client.listFiles(ref, headers && { headers }),
};

/** Every row of the service. */
async function allRows(): Promise<string[]> {
  const tables = ['file', 'file_download_url', 'application_usage', 'object_deletion'];
  const rows = tables.map((table) => `select '${table}' || t::text as row from ${table} t`).join(' union all ');
  return (await files.db.query(`${rows} order by 1`)).rows.map(({ row }) => row);
}

describe.each(Object.entries(CALLS))('%s', (name, call) => {
  it('gives one response for applications that are foreign, deleted, unknown or no UUID, and changes nothing', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'name' });
    const deleted = files.createOwned();
    files.apps.delete(deleted.applicationId);
    const before = await allRows();
    const bad = [
      { ...ref, accountId: randomUUID() },
      deleted,
      ...[randomUUID(), ...NO_UUIDS].map((applicationId) => ({ ...ref, applicationId })),
      ...NO_UUIDS.map((accountId) => ({ ...ref, accountId })),
    ];
    for (const given of bad) expect(await refusalOf(call(files.client, { ...given, fileId }))).toEqual(NOT_FOUND);
    files.apps.failWith(new Error('refused by the test'));
    await expect(call(files.client, { ...ref, fileId }))
      .rejects.toThrow()
      .finally(() => files.apps.failWith(undefined));
    expect(await allRows()).toEqual(before);
  });

  it('takes ids in capitals, and passes its request id to the apps service', async () => {
    const { accountId, applicationId } = files.createOwned();
    const fileId = (await storeFile(files, { accountId, applicationId })).toUpperCase();
    const ref = { accountId: accountId.toUpperCase(), applicationId: applicationId.toUpperCase(), fileId };
    const requestId = randomUUID();
    await call(files.client, ref, { 'x-request-id': requestId });
    expect(files.apps.requestIds.filter((id) => id === requestId)).toHaveLength(1);
  });

  it.runIf(name in FILE_CALLS)('finds no file that is of another application, unknown or no UUID', async () => {
    const ref = files.createOwned();
    const foreign = await storeFile(files, files.createOwned(ref.accountId));
    const before = await allRows();
    for (const fileId of [foreign, randomUUID(), ...NO_UUIDS]) {
      expect(await reasonOf(call(files.client, { ...ref, fileId }))).toBe('file_not_found');
    }
    expect(await allRows()).toEqual(before);
  });
});

describe('a name', () => {
  it('is free until a file of the application has it, by exact text', async () => {
    const ref = files.createOwned();
    await files.client.checkFileName({ ...ref, fileName: 'a file' });
    await storeFile(files, ref, { name: 'a file' });
    const refusal = await refusalOf(files.client.checkFileName({ ...ref, fileName: ' a\u200b file ' }));
    expect(refusal).toMatchObject({ reason: 'file_name_taken', kind: 'conflict', code: 'file_name_taken' });
    await files.client.checkFileName({ ...ref, fileName: 'A file' });
    await files.client.checkFileName({ ...files.createOwned(ref.accountId), fileName: 'a file' });
  });

  it.each(['', '.', 'a..b', 'a'.repeat(17), 'ä', 'a/b', 'a\u00a0b', '\0', '\ud800'])(
    'that breaks the rules is rejected before anything else: %j',
    async (fileName) => {
      const nowhere = { accountId: randomUUID(), applicationId: 'x', fileId: 'x', fileName };
      for (const call of [files.client.checkFileName(nowhere), files.client.renameFile(nowhere)]) {
        expect(await refusalOf(call)).toMatchObject({ reason: 'file_name_invalid', code: 'VALIDATION_ERROR' });
      }
    },
  );
});

it('metadata count the files of the application and have the upload time of the newest', async () => {
  const ref = files.createOwned();
  const metadata = async () => {
    const { totalFiles, lastUploadedAt } = await files.client.getFilesMetadata(ref);
    return [totalFiles, lastUploadedAt && timestampDate(lastUploadedAt)];
  };
  expect(await metadata()).toEqual([0n, undefined]);
  const [older, newer] = [new Date('2026-01-01T00:00:00.001Z'), new Date('2026-01-02T00:00:00.002Z')];
  const fileId = await storeFile(files, ref, { createdAt: newer });
  await storeFile(files, ref, { createdAt: older });
  await storeFile(files, files.createOwned(ref.accountId));
  expect(await metadata()).toEqual([2n, newer]);
  await files.client.deleteFile({ ...ref, fileId });
  expect(await metadata()).toEqual([1n, older]);
});

describe('a rename', () => {
  const nameOf = async (ref: OwnedRef) => (await files.client.listFiles(ref)).files[0]?.displayName;

  it('stores the normalised name, also where the file has it already', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'old' });
    for (const fileName of [' new\u200b.txt ', 'new.txt']) await files.client.renameFile({ ...ref, fileId, fileName });
    expect(await nameOf(ref)).toBe('new.txt');
    expect((await files.client.listFiles({ ...ref, nameContains: 'NEW' })).totalFiles).toBe(1n);
    await files.client.checkFileName({ ...ref, fileName: 'old' });
  });

  it('to the name of another file of the application is rejected and changes nothing', async () => {
    const ref = files.createOwned();
    await storeFile(files, ref, { name: 'other', createdAt: new Date(0) });
    const fileId = await storeFile(files, ref, { name: 'one' });
    expect(await reasonOf(files.client.renameFile({ ...ref, fileId, fileName: 'other' }))).toBe('file_name_taken');
    expect(await nameOf(ref)).toBe('one');
  });

  it('of two files to each other’s name is rejected for both, without a deadlock', async () => {
    const ref = files.createOwned();
    const ids = [await storeFile(files, ref, { name: 'one' }), await storeFile(files, ref, { name: 'other' })];
    const release = await pauseBeforeNameCheck();
    const renames = ['other', 'one'].map((fileName, i) =>
      reasonOf(files.client.renameFile({ ...ref, fileId: ids[i] as string, fileName })),
    );
    await waitersForLocks(files.db, 2);
    const [outcomes] = await Promise.all([Promise.all(renames), release()]);
    expect(outcomes).toEqual(['file_name_taken', 'file_name_taken']);
  });
});

/**
 * Makes every change of a file wait between the change of its row and the check of its name, by an
 * index that comes before that of names. The returned function releases them.
 */
async function pauseBeforeNameCheck(): Promise<() => Promise<void>> {
  await files.db.query(`
    create function pause(id uuid) returns uuid immutable language plpgsql
      as $$ begin perform pg_advisory_xact_lock_shared(1); return id; end $$;
    alter table file drop constraint file_name;
    create index pausing on file (pause(id));
    alter table file add constraint file_name unique (application_id, display_name)`);
  onTestFinished(() => files.db.query('drop function pause cascade').then(() => undefined));
  const holder = await files.db.connect();
  await holder.query('select pg_advisory_lock(1)');
  return async () => {
    await holder.query('select pg_advisory_unlock(1)');
    holder.release();
  };
}

describe('a download URL', () => {
  const counters = async (ref: OwnedRef) => {
    const [file] = (await files.client.listFiles(ref)).files;
    const last = file?.lastPresignedUrlCreatedAt;
    return { count: file?.presignedUrlsCount, last: last && timestampDate(last) };
  };
  const withStore = (createDownloadUrl: ObjectStore['createDownloadUrl']) =>
    files.connect({ changeStore: () => ({ createDownloadUrl }) });

  it('is of this service for the disk store, valid for 300 seconds unless given, and counted', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    const now = files.clock.now();
    for (const [lifetimeSeconds, seconds] of [
      [0, 300],
      [3_600, 3_600],
    ] as const) {
      const { url, expiresAt } = await files.client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds });
      const end = new Date(now.getTime() + seconds * 1_000);
      expect(expiresAt && timestampDate(expiresAt)).toEqual(end);
      const token = new URL(url).pathname.split('/').at(-1) ?? '';
      expect([now, end].map((at) => files.ctx.downloadUrls.read(token, at))).toEqual([fileId, undefined]);
    }
    await Promise.all(Array.from({ length: 20 }, () => files.client.createDownloadUrl({ ...ref, fileId })));
    expect(await counters(ref)).toEqual({ count: 22n, last: now });
  });

  it('is the store’s own where it serves objects; one that could not be created is not counted', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'a.png', contentType: 'image/png' });
    const failing = withStore(() => Promise.reject(new Error('no')));
    await expect(failing.client.createDownloadUrl({ ...ref, fileId })).rejects.toThrow();
    const asked: unknown[] = [];
    const { client, ctx } = withStore(async (...args) => {
      asked.push(args);
      return 'https://store.example/object';
    });
    const { url } = await client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds: 60 });
    expect(url).toBe('https://store.example/object');
    const description = { fileName: 'a.png', contentType: 'image/png', lifetimeSeconds: 60 };
    expect(asked).toEqual([[objectKey(ref.applicationId, fileId), description]]);
    expect((await counters(ref)).count).toBe(1n);
    await Promise.all([failing.ctx.usage.stop(), ctx.usage.stop()]);
    const { applicationId } = ref;
    expect(files.apps.usage).toEqual([{ applicationId, uploads: 0, downloads: 1 }]);
  });

  it.each([-1, 3_601])('is not valid for %i seconds', async (lifetimeSeconds) => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    expect(await reasonOf(files.client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds }))).toBe('lifetime_invalid');
  });
});
