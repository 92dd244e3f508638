import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { reasonOf } from '../../testing/uploads.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';
import { MIB } from '../upload/usage.ts';

const files = useTestFiles();

async function usageOf({ applicationId }: OwnedRef) {
  const text = 'select file_count::int as files, charged_mib::int as mib from application_usage where application_id = $1';
  return (await files.db.query(text, [applicationId])).rows[0];
}

/** Keys of objects whose removal is scheduled. */
async function scheduled({ applicationId }: OwnedRef): Promise<string[]> {
  const text = `select object_key from object_deletion where object_key like $1 and due_at > now()`;
  return (await files.db.query(text, [`${applicationId}/%`])).rows.map((row) => row.object_key);
}

const outcomeOf = (call: Promise<unknown>) => call.then(() => 'done').catch(() => reasonOf(call));

/** Deletes a file through a store with this `remove`; returns its key and the time taken. */
async function deleteThrough(ref: OwnedRef, remove: ObjectStore['remove']) {
  const fileId = await storeFile(files, ref);
  const { client } = files.connect({ changeStore: () => ({ remove }) });
  const startedAt = performance.now();
  await client.deleteFile({ ...ref, fileId });
  return { key: objectKey(ref.applicationId, fileId), ms: performance.now() - startedAt };
}

it('a deletion removes row, object and download counter, subtracts the usage and frees the name', async () => {
  const ref = files.createOwned();
  const kept = await storeFile(files, ref, { name: 'kept', bytes: Buffer.alloc(MIB) });
  const fileId = await storeFile(files, ref, { name: 'gone', bytes: Buffer.alloc(3 * MIB - 1) });
  await files.client.createDownloadUrl({ ...ref, fileId });
  const calls = Array.from({ length: 8 }, () => files.client.deleteFile({ ...ref, fileId }));
  const outcomes = await Promise.all(calls.map(outcomeOf));
  expect(outcomes.sort()).toEqual(['done', ...Array(7).fill('file_not_found')]);
  expect(await usageOf(ref)).toEqual({ files: 1, mib: 1 });
  expect((await files.client.listFiles(ref)).files.map((file) => file.id)).toEqual([kept]);
  expect(await files.ctx.store.stat(objectKey(ref.applicationId, fileId))).toBeUndefined();
  expect(await files.ctx.store.stat(objectKey(ref.applicationId, kept))).toEqual({ byteSize: MIB });
  expect(await scheduled(ref)).toEqual([]);
  await files.client.checkFileName({ ...ref, fileName: 'gone' });
});

it('a deletion succeeds where less usage is recorded than there is', async () => {
  const ref = files.createOwned();
  const fileId = await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB) });
  await files.db.query('update application_usage set file_count = 0, charged_mib = 1 where application_id = $1', [
    ref.applicationId,
  ]);
  await files.client.deleteFile({ ...ref, fileId });
  expect(await usageOf(ref)).toEqual({ files: 0, mib: 0 });
});

it('a deletion succeeds where the store fails, and leaves the object to the sweeper', async () => {
  const ref = files.createOwned();
  const { key } = await deleteThrough(ref, () => Promise.reject(new Error('rejected by the test')));
  expect((await files.client.getFilesMetadata(ref)).totalFiles).toBe(0n);
  expect(await scheduled(ref)).toEqual([key]);
});

it('a deletion responds within two seconds where the store is slow, and unschedules the object once it is removed', async () => {
  const ref = files.createOwned();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { key, ms } = await deleteThrough(ref, () => promise);
  expect(ms).toBeLessThan(4_000);
  expect(await scheduled(ref)).toEqual([key]);
  resolve();
  await eventually(async () => (await scheduled(ref)).length === 0);
});

it('concurrent deletions, renames and pages of the same files all end, and the counts agree after', async () => {
  const ref = files.createOwned();
  const ids = await Promise.all(Array.from({ length: 12 }, (_, i) => storeFile(files, ref, { name: `file ${i}` })));
  const calls = ids.flatMap((fileId, i) => [
    files.client.renameFile({ ...ref, fileId, fileName: `file ${(i + 1) % 12}` }),
    files.client.listFiles({ ...ref, page: BigInt(i % 4), nameContains: i % 2 ? 'file' : '' }),
    files.client.createDownloadUrl({ ...ref, fileId }),
    ...(i % 2 ? [files.client.deleteFile({ ...ref, fileId })] : []),
  ]);
  const outcomes = await Promise.all(calls.map(outcomeOf));
  for (const outcome of outcomes) expect(['done', 'file_not_found', 'file_name_taken']).toContain(outcome);
  expect(await usageOf(ref)).toEqual({ files: 6, mib: 6 });
  expect((await files.client.listFiles({ ...ref, nameContains: 'file' })).totalFiles).toBe(6n);
});
