import { writeFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { newId } from '@latchkey/kit/validation/id';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeEach, describe, expect, it } from 'vitest';
import { getAvatar } from '../../avatars/avatar.ts';
import {
  check,
  damageObject,
  loseObject,
  pathOf,
  putOrphan,
  putUnfinished,
  removeAll,
  storeAvatar,
} from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { createUploads } from '../../testing/uploads.ts';
import { type ObjectStore, objectKey, type StoredObject } from '../object-store/object-store.ts';
import { MIB } from '../upload/usage.ts';

const files = useTestFiles();
let ref: OwnedRef;
beforeEach(async () => {
  await removeAll(files);
  ref = files.createOwned();
});

const repair = (options = {}) => check(files.ctx, { repair: true, ...options });
const count = async (table: string) => (await files.db.query(`select from ${table}`)).rowCount;
const withStore = (change: (store: ObjectStore) => Partial<ObjectStore>) => {
  return { ...files.ctx, store: { ...files.ctx.store, ...change(files.ctx.store) } };
};
/** Acts between the listing of an object and its comparison. */
const afterListing = (act: (object: StoredObject) => Promise<unknown>) =>
  withStore((store) => ({
    async *list() {
      const objects: StoredObject[] = [];
      for await (const object of store.list()) objects.push(object);
      for (const object of objects) await act(object);
      yield* objects;
    },
  }));

describe('findings', () => {
  it('are objects and unfinished uploads that no file, upload or scheduled removal has', async () => {
    const upload = { id: newId(), applicationId: newId() };
    await files.db.query(
      `insert into upload_intent (id, account_id, application_id, display_name, byte_size_max, ticket_hash, deadline_at, lease_until)
       values ($1, $2, $3, 'a', 1, '\\x00', now(), now())`,
      [upload.id, newId(), upload.applicationId],
    );
    const known = objectKey(upload.applicationId, upload.id);
    await putUnfinished(files, known);
    await putOrphan(files, known);
    await files.db.query('insert into object_deletion (object_key) values ($1)', [await putOrphan(files)]);
    const stored = await storeFile(files, ref);
    expect((await check(files.ctx)).found).toEqual([]);
    const unknown = [objectKey(newId(), upload.id), objectKey(newId(), stored), objectKey(ref.applicationId, newId())];
    for (const key of unknown) await putOrphan(files, key);
    const rest = await putUnfinished(files);
    expect((await check(files.ctx)).found).toEqual(
      [`unfinished upload ${rest}`, ...unknown.map((key) => `unknown object ${key}`)].toSorted(),
    );
    expect(await repair({ force: true })).toMatchObject({ left: 0, counts: { repaired: 4 } });
    expect((await check(files.ctx)).found).toEqual([]);
  });

  it('are recorded usage that is wrong, missing or of no files; repaired before files are removed', async () => {
    const other = files.createOwned();
    const lost = await storeFile(files, ref, { bytes: Buffer.alloc(5 * MIB) });
    await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB - 1) });
    await storeFile(files, other);
    await loseObject(files, ref, lost);
    await files.db.query('delete from application_usage where application_id = $1', [other.applicationId]);
    await files.db.query('update application_usage set file_count = 0, charged_mib = 9');
    const gone = newId();
    await files.db.query('insert into application_usage values ($1, $2, 1, 1)', [gone, newId()]);
    const ids = [ref.applicationId, other.applicationId, gone];
    expect((await check(files.ctx)).found).toEqual(
      [`missing object ${lost}`, ...ids.map((id) => `wrong usage ${id}`)].toSorted(),
    );
    expect(await repair()).toMatchObject({ left: 0, counts: { repaired: 4 } });
    const { rows } = await files.db.query('select charged_mib::int as mib from application_usage order by mib');
    expect(rows.map(({ mib }) => mib)).toEqual([0, 1, 2]);
    expect((await check(files.ctx)).found).toEqual([]);
  });

  it('are avatars whose image is missing or damaged; repaired, the accounts have none', async () => {
    const [gone, damaged, intact] = [await storeAvatar(files), await storeAvatar(files), await storeAvatar(files)];
    await rm(gone.path);
    await writeFile(damaged.path, 'other bytes');
    const found = [`lost avatar ${gone.id}`, `lost avatar ${damaged.id}`].toSorted();
    expect(await check(files.ctx)).toMatchObject({ found, left: 2, counts: { avatars: 3, objects: 2, files: 0 } });
    expect((await repair()).left).toBe(0);
    expect((await check(files.ctx)).found).toEqual([]);
    const avatarOf = ({ accountId }: typeof gone) => getAvatar(files.ctx, accountId, undefined);
    for (const lost of [gone, damaged]) await expect(avatarOf(lost)).rejects.toMatchObject({ reason: 'avatar_not_found' });
    expect((await avatarOf(intact)).avatarId).toBe(intact.id);
  });

  it('come from every page of rows and objects', async () => {
    const FILES = 2_001;
    await files.db.query(
      `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
       select gen_random_uuid(), $1, $2, 'f' || i, 7, sha256('content'), 'text/plain', now() from generate_series(1, ${FILES}) as i`,
      [ref.accountId, ref.applicationId],
    );
    await files.db.query('insert into application_usage values ($1, $2, $3, $3)', [ref.applicationId, ref.accountId, FILES]);
    const ids = (await files.db.query<{ id: string }>('select id from file order by id')).rows.map((row) => row.id);
    await mkdir(dirname(pathOf(files, ref, ids[0] as string)), { recursive: true });
    const lost = [0, 1_000, FILES - 1].map((i) => ids[i] as string);
    for (const id of ids) if (!lost.includes(id)) await writeFile(pathOf(files, ref, id), 'content');
    const sent = await statementsOf(async () => {
      const { found, counts } = await check(files.ctx);
      expect(found).toEqual(lost.map((id) => `missing object ${id}`));
      expect(counts).toMatchObject({ files: FILES, objects: FILES - 3, applications: 1 });
    });
    // Three pages of rows, two of objects, one of usage, and a confirmation of each finding.
    expect(sent).toHaveLength(3 + 2 + 1 + 3);
  });
});

describe('while the system runs', () => {
  const remove = async (id: string) => void (await files.client.deleteFile({ ...ref, fileId: id }));

  it('a file that is deleted meanwhile is not a finding', async () => {
    const [read, listed] = [await storeFile(files, ref), await storeFile(files, ref)];
    const reading = withStore((store) => ({
      async read(key) {
        if (key.endsWith(read)) await remove(read);
        return store.read(key);
      },
    }));
    expect((await check(reading)).found).toEqual([]);
    expect((await check(afterListing(() => remove(listed)))).found).toEqual([]);
  });

  it('an object whose upload commits after the listing, or that is removed then, is not a finding', async () => {
    const committing = Promise.withResolvers<void>();
    const { findOwned } = files.ctx;
    const slow = createUploads({ ...files.ctx, findOwned: (...args) => committing.promise.then(() => findOwned(...args)) });
    const ticket = await createUploads(files.ctx).begin(ref);
    const sending = slow.send(ticket, Buffer.from('bytes'));
    const [gone, stays] = [await putUnfinished(files), await putUnfinished(files)];
    const isListed = async () => {
      for await (const { unfinished } of files.ctx.store.list()) if (!unfinished) return true;
      return false;
    };
    while (!(await isListed()));
    const ctx = afterListing(async ({ key }) => {
      committing.resolve();
      await sending;
      if (key === gone) await files.ctx.store.remove(gone);
    });
    expect(await check(ctx)).toMatchObject({ found: [`unfinished upload ${stays}`], counts: { objects: 1 } });
  });

  it('what no longer holds is not repaired', async () => {
    const id = await storeFile(files, ref);
    await loseObject(files, ref, id);
    const orphan = await putOrphan(files);
    const restore = () => writeFileSync(pathOf(files, ref, id), 'content');
    // The last query of the store before the finding.
    const ctx = withStore((store) => ({
      async stat(key) {
        await files.db.query('insert into object_deletion (object_key) values ($1)', [key]);
        return store.stat(key);
      },
    }));
    const { found, left, counts } = await check(ctx, { repair: true, force: true }, restore);
    expect([found, left, counts.repaired]).toEqual([[`missing object ${id}`, `unknown object ${orphan}`], 0, 0]);
    expect([await count('file'), await files.ctx.store.stat(orphan)]).toEqual([1, { byteSize: 5 }]);
  });
});

describe('a store that fails', () => {
  const fail = (message: string) => () => Promise.reject(new Error(message));

  it('for one object leaves its file alone; for everything it ends the run', async () => {
    const id = await storeFile(files, ref);
    const broken = new Readable({ read: () => broken.destroy(new Error('EIO: i/o error')) });
    expect(
      await check(
        withStore(() => ({ read: async () => broken })),
        { repair: true, force: true },
      ),
    ).toMatchObject({
      texts: [expect.stringContaining('EIO: i/o error')],
      failed: [`unreadable object ${id}`],
      left: 1,
    });
    expect(await count('file')).toBe(1);
    await expect(check(withStore(() => ({ read: fail('EIO'), check: fail('ECONNREFUSED') })))).rejects.toThrow('ECONNREFUSED');
  });

  it('to remove the object of a file leaves that to the sweeper; unknown objects stay findings', async () => {
    const id = await storeFile(files, ref);
    await damageObject(files, ref, id, 'other');
    const orphan = await putOrphan(files);
    const result = await check(
      withStore(() => ({ remove: fail('EROFS') })),
      { repair: true },
    );
    expect(result).toMatchObject({ left: 1, failed: [`unknown object ${orphan}`], counts: { repaired: 1 } });
    const { rows } = await files.db.query('select object_key from object_deletion');
    expect(rows).toEqual([{ object_key: objectKey(ref.applicationId, id) }]);
  });
});
