import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { BY_ITSELF } from '@latchkey/kit/audit/actor';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { check, pathOf, putOrphan, putUnfinished } from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createUploads } from '../../testing/uploads.ts';
import { deleteFile } from '../file/delete-file.ts';
import type { ObjectStore, StoredObject } from '../object-store/object-store.ts';

let files: TestFiles;
let ref: OwnedRef;
beforeEach(async () => {
  files = await startTestFiles();
  ref = files.createOwned();
});
afterEach(() => files.stop());

/** The store with something around it. */
const withStore = (change: (store: ObjectStore) => Partial<ObjectStore>) => {
  const { db, store } = files.ctx;
  return { db, store: { ...store, ...change(store) } };
};

/** Lists, and does something between the listing of each object and what is made of it. */
const afterListing = (act: (object: StoredObject) => Promise<unknown>) =>
  withStore((store) => ({
    async *list() {
      const objects: StoredObject[] = [];
      for await (const object of store.list()) objects.push(object);
      for (const object of objects) await act(object);
      yield* objects;
    },
  }));

const acting = (ctx: TestFiles['ctx']) => ({ ...ctx, origin: BY_ITSELF });

describe('while the system runs, a check', () => {
  it('does not report a file that is deleted while its object is looked at', async () => {
    const id = await storeFile(files, ref);
    const ctx = withStore((store) => ({
      async read(key) {
        await deleteFile(acting(files.ctx), { ...ref, requestId: '' }, id);
        return store.read(key);
      },
    }));
    expect(await check(ctx, { mend: true })).toMatchObject({ found: [], left: 0 });
  });

  it('does not report an object that is removed, and forgotten, after it was listed', async () => {
    const id = await storeFile(files, ref);
    const ctx = afterListing(() => deleteFile(acting(files.ctx), { ...ref, requestId: '' }, id));
    expect(await check(ctx)).toMatchObject({ found: [], left: 0 });
    expect((await files.db.query('select from object_deletion')).rowCount).toBe(0);
  });

  it('does not report an object whose upload becomes a file after it was listed', async () => {
    const uploads = createUploads(files.ctx);
    const committing = Promise.withResolvers<void>();
    const { findOwned } = files.ctx;
    const slow = createUploads({
      ...files.ctx,
      findOwned: async (...args) => {
        const owned = await findOwned(...args);
        await committing.promise;
        return owned;
      },
    });
    const ticket = await uploads.begin(ref);
    const sending = slow.send(ticket, Buffer.from('bytes'));
    const listed: string[] = [];
    while (listed.length === 0) for await (const { key, unfinished } of files.ctx.store.list()) if (!unfinished) listed.push(key);
    const ctx = afterListing(async () => {
      committing.resolve();
      await sending;
    });
    expect(await check(ctx)).toMatchObject({ found: [], left: 0, counts: { objects: 1 } });
    expect((await files.db.query('select from upload_intent')).rowCount).toBe(0);
  });

  it('does not report the rest of an upload that is removed after it was listed', async () => {
    const gone = await putUnfinished(files);
    const stays = await putUnfinished(files);
    const ctx = afterListing(({ key }) => (key === gone ? files.ctx.store.remove(key) : Promise.resolve()));
    expect((await check(ctx)).found).toEqual([`upload_unfinished ${stays}`]);
  });

  it('does not remove an object that somebody knows by the time of mending', async () => {
    const key = await putOrphan(files);
    const { db } = files.ctx;
    let asked = 0;
    const ctx = withStore((store) => ({
      async stat(key) {
        asked += 1;
        await files.db.query('insert into object_deletion (object_key) values ($1)', [key]);
        return store.stat(key);
      },
    }));
    expect(await check({ ...ctx, db }, { mend: true })).toMatchObject({
      found: [`object_orphaned ${key}`],
      outcomes: [`gone object_orphaned ${key}`],
    });
    expect([asked, await files.ctx.store.stat(key)]).toEqual([1, { byteSize: 5 }]);
  });

  it('finds and breaks nothing under uploads and deletions', { timeout: 60_000 }, async () => {
    const uploads = createUploads(files.ctx);
    const working = Array.from({ length: 4 }, () => work(uploads, 25));
    let running = true;
    const done = Promise.all(working).finally(() => {
      running = false;
    });
    let checks = 0;
    while (running) {
      expect(await check(files.ctx, { mend: true, force: true })).toMatchObject({ found: [], left: 0 });
      checks += 1;
    }
    const kept = (await done).flat();
    expect(checks).toBeGreaterThan(2);
    expect(kept.length).toBe(4 * 13);
    expect(await check(files.ctx)).toMatchObject({ found: [], counts: { files: kept.length, objects: kept.length } });
  });

  /** Uploads, and deletes every other file. */
  async function work(uploads: ReturnType<typeof createUploads>, rounds: number): Promise<string[]> {
    const own = files.createOwned();
    const kept: string[] = [];
    for (let i = 0; i < rounds; i += 1) {
      const { id } = await uploads.upload(own, randomBytes(10_000));
      if (i % 2 === 0) kept.push(id);
      else await deleteFile(acting(files.ctx), { ...own, requestId: '' }, id);
    }
    return kept;
  }
});

describe('a store that fails', () => {
  const breaking = () =>
    new Readable({
      read() {
        this.destroy(new Error('EIO: i/o error'));
      },
    });

  it('for one object is reported, and that file left alone', async () => {
    const id = await storeFile(files, ref);
    const ctx = withStore(() => ({ read: async () => breaking() }));
    expect(await check(ctx, { mend: true, force: true })).toMatchObject({
      findings: [{ kind: 'object_unreadable', reason: 'EIO: i/o error' }],
      outcomes: [`failed object_unreadable ${id}`],
      left: 1,
    });
    expect((await files.db.query('select from file')).rowCount).toBe(1);
  });

  it('for everything ends the check', async () => {
    await storeFile(files, ref);
    const away = () => Promise.reject(new Error('ECONNREFUSED'));
    const ctx = withStore(() => ({ read: away, check: away }));
    await expect(check(ctx)).rejects.toThrow('ECONNREFUSED');
  });
});

describe('many files', () => {
  it('are walked a page at a time, all of them', { timeout: 60_000 }, async () => {
    const COUNT = 3_210;
    await files.db.query(
      `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
       select gen_random_uuid(), $1, $2, 'f' || i, 7, sha256('content'), 'text/plain', now() from generate_series(1, ${COUNT}) as i`,
      [ref.accountId, ref.applicationId],
    );
    await files.db.query('insert into application_usage values ($1, $2, $3, $3)', [ref.applicationId, ref.accountId, COUNT]);
    const ids = (await files.db.query<{ id: string }>('select id from file order by id')).rows.map((row) => row.id);
    await mkdir(dirname(pathOf(files, ref, ids[0] as string)), { recursive: true });
    const lost = [0, 1_000, COUNT - 1].map((i) => ids[i] as string);
    for (const id of ids) if (!lost.includes(id)) await writeFile(pathOf(files, ref, id), 'content');
    let result: Awaited<ReturnType<typeof check>> | undefined;
    const sent = await statementsOf(async () => {
      result = await check(files.ctx);
    });
    expect(result?.found).toEqual(lost.map((id) => `object_missing ${id}`));
    expect(result?.counts).toMatchObject({ files: COUNT, objects: COUNT - 3, applications: 1 });
    // Four pages of rows, one of avatars, four of objects, one of usage, the count, and one question for each finding.
    expect(sent).toHaveLength(4 + 1 + 4 + 1 + 1 + 3);
  });
});
