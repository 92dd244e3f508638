import { eventually } from '@latchkey/testkit/eventually';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { type FilesInstance, startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';
import { MIB } from './charge.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;

async function usageOf(ref: OwnedRef) {
  const { rows } = await files.db.query(
    'select file_count::int as files, charged_mib::int as mib from application_usage where application_id = $1',
    [ref.applicationId],
  );
  return rows[0];
}

async function owedObjects(ref: OwnedRef): Promise<string[]> {
  const { rows } = await files.db.query('select object_key from object_deletion where object_key like $1', [
    `${ref.applicationId}/%`,
  ]);
  return rows.map((row) => row.object_key);
}

describe('deleting', () => {
  it('removes row, object and download counter, gives back what the file was charged and frees the name', async () => {
    const ref = files.createOwned();
    const kept = await storeFile(files, ref, { name: 'kept', bytes: Buffer.alloc(MIB) });
    const fileId = await storeFile(files, ref, { name: 'gone', bytes: Buffer.alloc(3 * MIB - 1) });
    expect(await usageOf(ref)).toEqual({ files: 2, mib: 3 });
    await files.client.createDownloadUrl({ ...ref, fileId });
    await files.client.deleteFile({ ...ref, fileId });
    expect(await usageOf(ref)).toEqual({ files: 1, mib: 1 });
    expect((await files.client.listFiles(ref)).files.map((file) => file.id)).toEqual([kept]);
    expect(await files.ctx.store.stat(objectKey(ref.applicationId, fileId))).toBeUndefined();
    expect(await files.ctx.store.stat(objectKey(ref.applicationId, kept))).toEqual({ byteSize: MIB });
    expect(await owedObjects(ref)).toEqual([]);
    await files.client.checkFileName({ ...ref, fileName: 'gone' });
    expect(await reasonOf(files.client.deleteFile({ ...ref, fileId }))).toBe('file_not_found');
  });

  it('succeeds where less usage is recorded than there is, which nothing is taken from twice', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB) });
    await files.db.query('update application_usage set file_count = 0, charged_mib = 1 where application_id = $1', [
      ref.applicationId,
    ]);
    await files.client.deleteFile({ ...ref, fileId });
    expect(await usageOf(ref)).toEqual({ files: 0, mib: 0 });
    expect((await files.client.listFiles(ref)).files).toEqual([]);
  });

  it.each([0, 1, 2, 3, 4, 5])('one file many times at once succeeds once and is given back once (%i)', async () => {
    const ref = files.createOwned();
    await storeFile(files, ref);
    const fileId = await storeFile(files, ref);
    const calls = Array.from({ length: 8 }, () => files.client.deleteFile({ ...ref, fileId }));
    const outcomes = await Promise.all(
      calls.map((call) =>
        call.then(
          () => 'done',
          () => reasonOf(call),
        ),
      ),
    );
    expect(outcomes.sort()).toEqual(['done', ...Array(7).fill('file_not_found')]);
    expect(await usageOf(ref)).toEqual({ files: 1, mib: 1 });
  });

  /** Deletes a file through an instance whose store removes as given; answers the object's key and how long the call took. */
  async function deleteThrough(remove: ObjectStore['remove'], ref: OwnedRef) {
    const fileId = await storeFile(files, ref);
    const instance: FilesInstance = files.connect({ aroundStore: (store) => ({ ...store, remove }) });
    const startedAt = performance.now();
    await instance.client.deleteFile({ ...ref, fileId });
    return { key: objectKey(ref.applicationId, fileId), ms: performance.now() - startedAt };
  }

  it('succeeds where the store fails, and owes it the object', async () => {
    const ref = files.createOwned();
    const { key } = await deleteThrough(() => Promise.reject(new Error('refused by the test')), ref);
    expect((await files.client.getFilesMetadata(ref)).totalFiles).toBe(0n);
    expect(await owedObjects(ref)).toEqual([key]);
    const { rows } = await files.db.query('select due_at > now() as later from object_deletion where object_key = $1', [key]);
    expect(rows).toEqual([{ later: true }]);
  });

  it('answers within two seconds where the store is slow, and owes nothing once it is done', async () => {
    const ref = files.createOwned();
    const { promise, resolve } = Promise.withResolvers<void>();
    const { key, ms } = await deleteThrough(() => promise, ref);
    expect(ms).toBeGreaterThan(1_900);
    expect(ms).toBeLessThan(4_000);
    expect(await owedObjects(ref)).toEqual([key]);
    resolve();
    await eventually(async () => (await owedObjects(ref)).length === 0);
  });

  it('beside renames and pages of the same files breaks nothing, and all counts agree after', async () => {
    const ref = files.createOwned();
    const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => storeFile(files, ref, { name: `file ${i}` })));
    const outcomes = await Promise.all(
      ids.flatMap((fileId, i) => {
        const calls = [
          files.client.renameFile({ ...ref, fileId, fileName: `file ${(i + 1) % 30}` }),
          files.client.listFiles({ ...ref, page: BigInt(i % 4), nameContains: i % 2 ? 'file' : '' }),
          files.client.createDownloadUrl({ ...ref, fileId }),
          ...(i % 2 ? [files.client.deleteFile({ ...ref, fileId })] : []),
        ];
        return calls.map((call) =>
          call.then(
            () => 'done',
            () => reasonOf(call),
          ),
        );
      }),
    );
    for (const outcome of outcomes) expect(['done', 'file_not_found', 'file_name_taken']).toContain(outcome);
    expect(await usageOf(ref)).toEqual({ files: 15, mib: 15 });
    expect((await files.client.listFiles({ ...ref, pageSize: 100, nameContains: 'file' })).totalFiles).toBe(15n);
  });
});
