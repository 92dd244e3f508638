import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { eventually } from '@latchkey/testkit/eventually';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;

/**
 * Makes every change of a file's row wait where the row is changed and its name not yet compared: in an index that comes before that of the names.
 * What is returned lets all of them go on; it is taken back when the test has ended, and nobody changes a row any more.
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

/** Whether so many statements of this database wait for a lock. */
async function areWaiting(count: number): Promise<boolean> {
  const { rows } = await files.db.query(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0].count === count;
}

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

  it('of two files to each other’s name at once is refused for both, and neither waits for the other', async () => {
    const ref = files.createOwned();
    const [one, other] = [await storeFile(files, ref, { name: 'one' }), await storeFile(files, ref, { name: 'other' })];
    const letGo = await pauseBeforeNameCheck();
    const calls = [
      files.client.renameFile({ ...ref, fileId: one, fileName: 'other' }),
      files.client.renameFile({ ...ref, fileId: other, fileName: 'one' }),
    ].map(reasonOf);
    await eventually(() => areWaiting(2));
    const [outcomes] = await Promise.all([Promise.all(calls), letGo()]);
    expect(outcomes).toEqual(['file_name_taken', 'file_name_taken']);
  });
});
