import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { cleanedUp, insertFiles, remainsOf } from '../../testing/remains.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { createUploads, reasonOf } from '../../testing/uploads.ts';
import { deleteFiles } from '../file/file.store.ts';
import { cleanUpApplication, purgeTombstones } from './deleted-application.ts';

const files = useTestFiles();

async function ownedWith(fileCount: number): Promise<OwnedRef> {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, fileCount);
  return ref;
}

const cleanUp = (ref: OwnedRef, onObjectsToRemove = () => {}) => cleanUpApplication(files.ctx, ref, onObjectsToRemove);
const remains = ({ applicationId }: OwnedRef) => remainsOf(files.db, applicationId);

describe('the clean-up of a deleted application', () => {
  it('deletes files and usage, schedules the removal of objects, and is idempotent', async () => {
    const [ref, empty] = [files.createOwned(), files.createOwned()];
    const ids = [await storeFile(files, ref), await storeFile(files, ref, { bytes: Buffer.alloc(3 * 1024 * 1024) })];
    const other = await ownedWith(4);
    const before = await remains(other);
    for (const one of [ref, empty, ref, empty]) await cleanUp(one);
    expect([await remains(ref), await remains(empty)]).toEqual([cleanedUp(2), cleanedUp(0)]);
    const text = 'select object_key from object_deletion where object_key like $1';
    const { rows } = await files.db.query(text, [`${ref.applicationId}/%`]);
    expect(rows.map((row) => row.object_key).sort()).toEqual(ids.map((id) => `${ref.applicationId}/${id}`).sort());
    expect(await remains(other)).toEqual(before);
  });

  it('works in batches of 500, each announced after its commit, also concurrently and where too little usage is recorded', async () => {
    const ref = await ownedWith(1_234);
    await files.db.query('update application_usage set file_count = 1 where application_id = $1', [ref.applicationId]);
    const scheduled: Array<Promise<number>> = [];
    await cleanUp(ref, () => void scheduled.push(remains(ref).then(({ objects }) => objects)));
    expect(scheduled).toHaveLength(3);
    for (const count of await Promise.all(scheduled)) expect(count).toBeGreaterThanOrEqual(500);
    expect(await remains(ref)).toEqual(cleanedUp(1_234));
    const shared = await ownedWith(1_600);
    await Promise.all([cleanUp(shared), cleanUp(shared), cleanUp(shared)]);
    expect(await remains(shared)).toEqual(cleanedUp(1_600));
  });

  it('waits for an upload that is being committed, and deletes its file', async () => {
    const ref = files.createOwned();
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    // The last statement of the commit waits for this.
    const release = await holdLocks(files.db, 'lock table audit_entry in share mode');
    const sending = uploads.send(ticket, Buffer.from('at the same time'));
    await waitersForLocks(files.db, 1);
    const cleaning = cleanUp(ref);
    await waitersForLocks(files.db, 2).finally(() => release());
    await Promise.all([sending, cleaning]);
    expect(await remains(ref)).toEqual(cleanedUp(1));
  });

  it('deletes no more files at once than a batch has, also where PostgreSQL expects few', async () => {
    await ownedWith(600);
    await files.db.query('analyze file');
    // Later than the statistics, so a join that repeats the inner query seems cheap.
    const { applicationId } = await ownedWith(600);
    expect(await deleteFiles(files.ctx.db, applicationId, { limit: 500 })).toHaveLength(500);
  });

  it('abandons an upload to the application, and none to another of the account', async () => {
    const ref = files.createOwned();
    const other = files.createOwned(ref.accountId);
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    await cleanUp(ref);
    expect(await reasonOf(uploads.send(ticket, Buffer.from('late')))).toBe('upload_ticket_invalid');
    const otherTicket = await uploads.begin(other);
    await cleanUp(ref);
    await uploads.send(otherTicket, Buffer.from('in time'));
    expect(await remains(other)).toMatchObject({ files: 1, isMarked: false });
  });

  it.each(['before', 'after'] as const)(
    'that fails %s any of its statements is completed by the next try',
    async (moment) => {
      let position = 0;
      for (let failed = true; failed; position += 1) {
        const ref = await ownedWith(501);
        failed = await failAt(position, moment, () => cleanUp(ref));
        const { files: left, objects } = await remains(ref);
        expect({ position, objects: left + objects }).toEqual({ position, objects: 501 });
        await cleanUp(ref);
        expect(await remains(ref)).toEqual(cleanedUp(501));
      }
      expect(position).toBeGreaterThan(18);
    },
    60_000,
  );
});

/** Makes one statement of `run` fail; returns whether there was such a statement. */
async function failAt(position: number, moment: 'before' | 'after', run: () => Promise<unknown>): Promise<boolean> {
  let sent = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = async function fail(this: pg.Client) {
    const isFailing = sent++ === position;
    if (isFailing && moment === 'before') throw new Error('broken by the test');
    // biome-ignore lint/complexity/noArguments: pg has many overloads; all go through unchanged.
    const result = await Reflect.apply(query, this, arguments);
    if (isFailing) throw new Error('broken by the test');
    return result;
  } as unknown as typeof query;
  try {
    await run().catch((err: Error) => expect(String(err.cause ?? err)).toContain('broken'));
  } finally {
    pg.Client.prototype.query = query;
  }
  return sent > position;
}

describe('tombstones', () => {
  it('are deleted after 30 days and an hour, once the application is cleaned up', async () => {
    const [old, young, half] = [await ownedWith(1), await ownedWith(1), await ownedWith(1)];
    for (const ref of [old, young]) await cleanUp(ref);
    const insert = `insert into deleted_application (application_id, created_at) values ($1, now() - $2::interval)
      on conflict (application_id) do update set created_at = excluded.created_at`;
    await files.db.query(insert, [old.applicationId, '721 hours 1 minute']);
    await files.db.query(insert, [young.applicationId, '720 hours 59 minutes']);
    await files.db.query(insert, [half.applicationId, '730 hours']);
    // More than a batch.
    await files.db.query(
      `insert into deleted_application select gen_random_uuid(), now() - interval '722 hours', now() from generate_series(1, 1100)`,
    );
    await purgeTombstones(files.ctx, new AbortController().signal);
    const expired = `select from deleted_application where created_at < now() - interval '721 hours'`;
    expect((await files.db.query(expired)).rowCount).toBe(1);
    const left = await Promise.all([old, young, half].map(remains));
    expect(left.map(({ isMarked }) => isMarked)).toEqual([false, true, true]);
  });
});
