import { writeFileSync } from 'node:fs';
import { newId } from '@latchkey/kit/id';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { check, damageObject, loseObject, pathOf, putOrphan, putUnfinished } from '../../testing/damage.ts';
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

const mend = (options = {}) => check(files.ctx, { mend: true, ...options });
const idsOf = async () => (await files.db.query('select id from file order by id')).rows.map((row) => row.id);
const usageOf = async () => {
  const { rows } = await files.db.query('select file_count, charged_mib from application_usage where application_id = $1', [
    ref.applicationId,
  ]);
  return [Number(rows[0].file_count), Number(rows[0].charged_mib)];
};

describe('mending', () => {
  it('removes a file whose object is missing or damaged as its deletion would, and leaves the others', async () => {
    const whole = await storeFile(files, ref);
    const lost = await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB) });
    const rotten = await storeFile(files, ref);
    await files.db.query('insert into file_download_url values ($1, 1, now())', [lost]);
    await loseObject(files, ref, lost);
    await damageObject(files, ref, rotten, 'c0ntent');
    const { left, counts, outcomes } = await mend();
    expect({ left, mended: counts.mended }).toEqual({ left: 0, mended: 2 });
    expect(outcomes).toEqual([`mended object_damaged ${rotten}`, `mended object_missing ${lost}`]);
    expect(await idsOf()).toEqual([whole]);
    expect(await usageOf()).toEqual([1, 1]);
    expect(await files.ctx.store.stat(objectKey(ref.applicationId, rotten))).toBeUndefined();
    expect((await files.db.query('select from object_deletion')).rowCount).toBe(0);
    expect((await check(files.ctx)).found).toEqual([]);
  });

  it('leaves the object of a file that it removed to the sweeper where the store does not remove it', async () => {
    const id = await storeFile(files, ref);
    await damageObject(files, ref, id, 'other');
    const { store, db } = files.ctx;
    const stubborn = { ...store, remove: () => Promise.reject(new Error('EROFS')) };
    expect(await check({ db, store: stubborn }, { mend: true })).toMatchObject({ left: 0 });
    expect(await idsOf()).toEqual([]);
    const { rows } = await files.db.query('select object_key from object_deletion');
    expect(rows).toEqual([{ object_key: objectKey(ref.applicationId, id) }]);
    expect((await check(files.ctx)).found).toEqual([]);
  });

  it('removes objects and rests of uploads that nobody knows', async () => {
    const whole = await storeFile(files, ref);
    await putOrphan(files);
    await putUnfinished(files);
    expect(await mend()).toMatchObject({ left: 0, counts: { mended: 2 } });
    const keys: string[] = [];
    for await (const { key } of files.ctx.store.list()) keys.push(key);
    expect(keys).toEqual([objectKey(ref.applicationId, whole)]);
  });

  it('says of each that the store does not remove that it is left', async () => {
    await putOrphan(files);
    const { store, db } = files.ctx;
    const stubborn = { ...store, remove: () => Promise.reject(new Error('EROFS')) };
    expect(await check({ db, store: stubborn }, { mend: true })).toMatchObject({ left: 1, counts: { mended: 0 } });
  });

  it('records usage that was wrong, missing or of nothing anew', async () => {
    const other = files.createOwned();
    await storeFile(files, ref, { bytes: Buffer.alloc(5 * MIB) });
    await storeFile(files, ref);
    await storeFile(files, other);
    await files.db.query('delete from application_usage where application_id = $1', [other.applicationId]);
    await files.db.query('update application_usage set file_count = 9, charged_mib = 0');
    await files.db.query('insert into application_usage values ($1, $2, 1, 1)', [newId(), newId()]);
    expect(await mend()).toMatchObject({ left: 0, counts: { mended: 3 } });
    expect(await usageOf()).toEqual([2, 6]);
    const { rows } = await files.db.query('select account_id from application_usage where application_id = $1', [
      other.applicationId,
    ]);
    expect(rows).toEqual([{ account_id: other.accountId }]);
    expect((await check(files.ctx)).found).toEqual([]);
  });

  it('takes a lost file out of usage that is too small for it', async () => {
    const id = await storeFile(files, ref, { bytes: Buffer.alloc(5 * MIB) });
    await loseObject(files, ref, id);
    await files.db.query('update application_usage set file_count = 0, charged_mib = 0');
    expect(await mend({ force: true })).toMatchObject({ left: 0 });
    expect(await usageOf()).toEqual([0, 0]);
  });

  it('leaves a file alone whose object came back after it was reported', async () => {
    const id = await storeFile(files, ref);
    await loseObject(files, ref, id);
    const restore = () => writeFileSync(pathOf(files, ref, id), 'content');
    const { left, outcomes } = await check(files.ctx, { mend: true, force: true }, restore);
    expect({ left, outcomes }).toEqual({ left: 0, outcomes: [`gone object_missing ${id}`] });
    expect(await idsOf()).toEqual([id]);
  });
});

describe('mending where most is wrong', () => {
  const FEW = 10;

  async function lose(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < count; i += 1) {
      const id = await storeFile(files, ref);
      await loseObject(files, ref, id);
      ids.push(id);
    }
    return ids;
  }

  it('is refused for files, as another folder would look like that, unless it is forced', async () => {
    await lose(FEW + 1);
    await storeFile(files, ref);
    const orphan = await putOrphan(files);
    expect(await mend()).toMatchObject({ refusal: 'files', left: FEW + 2, counts: { mended: 0 }, outcomes: [] });
    expect(await idsOf()).toHaveLength(FEW + 2);
    expect(await files.ctx.store.stat(orphan)).toBeDefined();
    expect(await mend({ force: true })).toMatchObject({ refusal: undefined, left: 0, counts: { mended: FEW + 2 } });
    expect(await idsOf()).toHaveLength(1);
  });

  it('is refused for objects, as another database would look like that, unless it is forced', async () => {
    await storeFile(files, ref);
    for (let i = 0; i <= FEW; i += 1) await putOrphan(files);
    expect(await mend()).toMatchObject({ refusal: 'objects', left: FEW + 1, counts: { mended: 0 }, outcomes: [] });
    expect(await mend({ force: true })).toMatchObject({ refusal: undefined, left: 0 });
  });

  it('is refused for a single file where there is no object at all, as of a folder that is not mounted', async () => {
    const [id] = await lose(1);
    expect(await mend()).toMatchObject({ refusal: 'files', left: 1, counts: { mended: 0 } });
    expect(await idsOf()).toEqual([id]);
    expect(await mend({ force: true })).toMatchObject({ refusal: undefined, left: 0 });
  });

  it('is not refused for a few, or for half', async () => {
    await storeFile(files, ref);
    await lose(FEW);
    expect(await mend()).toMatchObject({ refusal: undefined, left: 0 });
    await lose(FEW + 1);
    for (let i = 0; i <= FEW; i += 1) await storeFile(files, ref);
    expect(await mend()).toMatchObject({ refusal: undefined, left: 0 });
    expect(await idsOf()).toHaveLength(FEW + 2);
  });
});
