import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../testing/fake-apps.ts';
import { refusalOf } from '../testing/refusal.ts';
import { storeFile } from '../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../testing/test-files.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;

async function nameOf(ref: OwnedRef, fileId: string): Promise<string | undefined> {
  return (await files.client.listFiles(ref)).files.find((file) => file.id === fileId)?.displayName;
}

describe('a name', () => {
  it('is free until a file of the application has it, by exact text', async () => {
    const ref = files.createOwned();
    const other = files.createOwned(ref.accountId);
    await files.client.checkFileName({ ...ref, fileName: 'a file' });
    await storeFile(files, ref, { name: 'a file' });
    const refusal = await refusalOf(files.client.checkFileName({ ...ref, fileName: ' a\u200b file ' }));
    expect(refusal).toMatchObject({ reason: 'file_name_taken', kind: 'conflict', code: 'file_name_taken' });
    await files.client.checkFileName({ ...ref, fileName: 'A file' });
    await files.client.checkFileName({ ...other, fileName: 'a file' });
  });

  it.each(['', '.', 'a..b', 'a ', 'a'.repeat(17), 'ä', 'a/b', 'a\u00a0b', '\0', '\ud800'].filter((name) => name !== 'a '))(
    'that breaks the rules is refused before anything else: %j',
    async (fileName) => {
      const nowhere = { accountId: randomUUID(), applicationId: 'x', fileId: 'x', fileName };
      for (const call of [files.client.checkFileName(nowhere), files.client.renameFile(nowhere)]) {
        expect(await refusalOf(call)).toMatchObject({ reason: 'file_name_invalid', code: 'VALIDATION_ERROR' });
      }
    },
  );
});

describe('metadata', () => {
  it('count the files of the application and know the newest', async () => {
    const ref = files.createOwned();
    const none = await files.client.getFilesMetadata(ref);
    expect(none.totalFiles).toBe(0n);
    expect(none).not.toHaveProperty('lastUploadedAt');
    const [first, second] = [new Date('2026-01-01T00:00:00.001Z'), new Date('2026-01-02T00:00:00.002Z')];
    const newest = await storeFile(files, ref, { createdAt: second });
    await storeFile(files, ref, { createdAt: first });
    await storeFile(files, files.createOwned(ref.accountId));
    const metadata = await files.client.getFilesMetadata(ref);
    expect(metadata.totalFiles).toBe(2n);
    expect(metadata.lastUploadedAt && timestampDate(metadata.lastUploadedAt)).toEqual(second);
    await files.client.deleteFile({ ...ref, fileId: newest });
    const after = await files.client.getFilesMetadata(ref);
    expect(after.totalFiles).toBe(1n);
    expect(after.lastUploadedAt && timestampDate(after.lastUploadedAt)).toEqual(first);
  });
});

describe('renaming', () => {
  it('gives a file the name that is left of the text, and the one it has succeeds', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'old' });
    for (const fileName of [' new\u200b.txt ', 'new.txt']) await files.client.renameFile({ ...ref, fileId, fileName });
    expect(await nameOf(ref, fileId)).toBe('new.txt');
    expect((await files.client.listFiles({ ...ref, nameContains: 'NEW' })).totalFiles).toBe(1n);
    await files.client.checkFileName({ ...ref, fileName: 'old' });
  });

  it('to a name that another file of the application has is refused and changes nothing', async () => {
    const ref = files.createOwned();
    const [fileId] = [await storeFile(files, ref, { name: 'one' }), await storeFile(files, ref, { name: 'other' })];
    await storeFile(files, files.createOwned(ref.accountId), { name: 'elsewhere' });
    expect(await reasonOf(files.client.renameFile({ ...ref, fileId, fileName: 'other' }))).toBe('file_name_taken');
    expect(await nameOf(ref, fileId)).toBe('one');
    await files.client.renameFile({ ...ref, fileId, fileName: 'elsewhere' });
  });

  it('in circles at once ends each with success or a taken name, and soon', async () => {
    const ref = files.createOwned();
    const names = ['a', 'b', 'c', 'd'];
    const ids = await Promise.all(names.map((name) => storeFile(files, ref, { name })));
    const startedAt = performance.now();
    for (let round = 0; round < 10; round += 1) {
      const calls = ids.map((fileId, i) =>
        files.client.renameFile({ ...ref, fileId, fileName: names[(i + round) % 4] as string }),
      );
      const outcomes = await Promise.all(
        calls.map((call) =>
          call.then(
            () => 'done',
            () => reasonOf(call),
          ),
        ),
      );
      for (const outcome of outcomes) expect(['done', 'file_name_taken']).toContain(outcome);
    }
    // PostgreSQL takes a second to see that two wait for each other.
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    const { files: left } = await files.client.listFiles(ref);
    expect(left.map((file) => file.displayName).sort()).toEqual(names);
  });
});
