import { createHash } from 'node:crypto';
import { newId } from '@latchkey/kit/id';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { check, damageObject, loseObject, putOrphan, putUnfinished } from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { objectKey } from '../object-store/object-store.ts';

const MIB = 1024 * 1024;

let files: TestFiles;
let ref: OwnedRef;
beforeEach(async () => {
  files = await startTestFiles();
  ref = files.createOwned();
});
afterEach(() => files.stop());

const setUsage = (set: string) =>
  files.db.query(`update application_usage set ${set} where application_id = $1`, [ref.applicationId]);

describe('a check', () => {
  it('finds nothing where everything agrees, and has looked at all of it', async () => {
    const other = files.createOwned();
    await storeFile(files, ref, { bytes: Buffer.alloc(2 * MIB + 5) });
    await storeFile(files, ref);
    await storeFile(files, other);
    const { found, left, counts, refusal } = await check(files.ctx);
    expect({ found, left, refusal }).toEqual({ found: [], left: 0, refusal: undefined });
    expect(counts).toEqual({
      files: 3,
      filesExpected: 3,
      avatars: 0,
      bytesRead: 2 * MIB + 5 + 14,
      objects: 3,
      applications: 2,
      findings: 0,
      mended: 0,
    });
  });

  it('finds nothing where there is nothing', async () => {
    expect(await check(files.ctx)).toMatchObject({ found: [], left: 0 });
  });

  it('finds a file without its object', async () => {
    const id = await storeFile(files, ref, { name: 'lost' });
    await loseObject(files, ref, id);
    const { findings, left } = await check(files.ctx);
    const file = { id, applicationId: ref.applicationId, displayName: 'lost', byteSize: 7, checksum: expect.any(Buffer) };
    expect(findings).toEqual([{ kind: 'object_missing', file }]);
    expect(left).toBe(1);
  });

  it('finds an object of another size, and one of the same size with other bytes', async () => {
    const [cut, rotten] = [await storeFile(files, ref), await storeFile(files, ref)];
    await damageObject(files, ref, cut, 'conte');
    await damageObject(files, ref, rotten, 'c0ntent');
    const { findings, found } = await check(files.ctx);
    expect(found).toEqual([`object_damaged ${cut}`, `object_damaged ${rotten}`].toSorted());
    const checksum = createHash('sha256').update('c0ntent').digest();
    expect(findings).toContainEqual(expect.objectContaining({ byteSize: 7, checksum }));
  });

  it('reads no object when it is told not to, and then knows damage by the size only', async () => {
    const [cut, rotten, lost] = [await storeFile(files, ref), await storeFile(files, ref), await storeFile(files, ref)];
    await damageObject(files, ref, cut, 'conte');
    await damageObject(files, ref, rotten, 'c0ntent');
    await loseObject(files, ref, lost);
    const { found, counts } = await check(files.ctx, { skipChecksums: true });
    expect(found).toEqual([`object_damaged ${cut}`, `object_missing ${lost}`]);
    expect(counts.bytesRead).toBe(0);
  });

  it('finds objects and rests of uploads that nobody knows, also below an application that has files', async () => {
    await storeFile(files, ref);
    const keys = [await putOrphan(files), await putOrphan(files, ref.applicationId)];
    const rest = await putUnfinished(files);
    const { found, counts } = await check(files.ctx);
    expect(found).toEqual([...keys.map((key) => `object_orphaned ${key}`), `upload_unfinished ${rest}`].toSorted());
    expect(counts.objects).toBe(3);
  });

  it('knows objects of uploads that are under way, and of files that are being removed', async () => {
    const upload = { id: newId(), applicationId: newId() };
    await files.db.query(
      `insert into upload_intent (id, account_id, application_id, display_name, byte_size_max, ticket_hash, deadline_at, lease_until)
       values ($1, $2, $3, 'a', 1, '\\x00', now(), now())`,
      [upload.id, newId(), upload.applicationId],
    );
    const key = objectKey(upload.applicationId, upload.id);
    await putUnfinished(files, key);
    await files.ctx.store.put(key, (async function* () {})(), new AbortController().signal);
    const removed = await putOrphan(files);
    await files.db.query('insert into object_deletion (object_key) values ($1)', [removed]);
    expect((await check(files.ctx)).found).toEqual([]);
    // What only shares an id with an upload or a file is none of it, nor is the rest of another upload.
    const stored = await storeFile(files, ref);
    const strangers = [objectKey(newId(), upload.id), objectKey(newId(), stored)];
    for (const stranger of strangers)
      await files.ctx.store.put(stranger, (async function* () {})(), new AbortController().signal);
    const rest = await putUnfinished(files);
    const expected = [...strangers.map((stranger) => `object_orphaned ${stranger}`), `upload_unfinished ${rest}`];
    expect((await check(files.ctx)).found).toEqual(expected.toSorted());
  });

  it.each([
    ['a count', 'file_count = file_count + 1'],
    ['a charge', 'charged_mib = charged_mib - 1'],
  ])('finds %s that does not add up', async (_what, set) => {
    await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB - 1) });
    await storeFile(files, ref, { bytes: Buffer.alloc(1) });
    expect((await check(files.ctx)).found).toEqual([]);
    await setUsage(set);
    expect((await check(files.ctx)).found).toEqual([`usage_wrong ${ref.applicationId}`]);
  });

  it('finds usage that is not recorded, and usage of files that are not there', async () => {
    const gone = files.createOwned();
    await storeFile(files, ref);
    await files.db.query('delete from application_usage');
    await files.db.query('insert into application_usage values ($1, $2, 1, 1)', [gone.applicationId, gone.accountId]);
    const { findings } = await check(files.ctx);
    const one = { fileCount: 1, chargedMib: 1 };
    expect(findings).toHaveLength(2);
    const none = { fileCount: 0, chargedMib: 0 };
    expect(findings).toContainEqual({
      kind: 'usage_wrong',
      usage: { applicationId: ref.applicationId, recorded: undefined, actual: one },
    });
    expect(findings).toContainEqual({
      kind: 'usage_wrong',
      usage: { applicationId: gone.applicationId, recorded: one, actual: none },
    });
  });

  it('changes nothing', async () => {
    const id = await storeFile(files, ref);
    await damageObject(files, ref, id, 'other');
    const orphan = await putOrphan(files);
    await setUsage('file_count = 7');
    const { found } = await check(files.ctx);
    expect(found).toHaveLength(3);
    expect((await check(files.ctx)).found).toEqual(found);
    expect(await files.ctx.store.stat(orphan)).toBeDefined();
  });
});
