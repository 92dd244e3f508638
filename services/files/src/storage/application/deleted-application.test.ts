import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { whileFailingAt } from '../../testing/failing-statement.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { forgotten, insertFiles, remainsOf } from '../../testing/remains.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createUploads, reasonOf } from '../../testing/uploads.ts';
import { forgetApplication, purgeTombstones } from './deleted-application.ts';

const FORGET = fileURLToPath(new URL('../../testing/forget-process.ts', import.meta.url));

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

/** An application that is deleted, with so many rows of files. */
async function deletedWith(fileCount: number): Promise<OwnedRef> {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, fileCount);
  files.apps.delete(ref.applicationId);
  return ref;
}

const forget = (ref: OwnedRef, onObjectsToRemove = () => {}) => forgetApplication(files.ctx, ref, onObjectsToRemove);

/** How many statements wait for a lock that somebody else holds. */
async function waitersForLocks(): Promise<number> {
  const { rows } = await files.db.query(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows[0].n;
}

async function intentsOf(ref: OwnedRef): Promise<string[]> {
  const { rows } = await files.db.query('select state from upload_intent where application_id = $1', [ref.applicationId]);
  return rows.map(({ state }) => state);
}

describe('an application that is forgotten', () => {
  it('has no file and no usage any more, and all of its objects are noted for removal', async () => {
    const ref = files.createOwned();
    const ids = [await storeFile(files, ref), await storeFile(files, ref, { bytes: Buffer.alloc(3 * 1024 * 1024) })];
    await forget(ref);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(2));
    const { rows } = await files.db.query('select object_key from object_deletion where object_key like $1', [
      `${ref.applicationId}/%`,
    ]);
    expect(rows.map((row) => row.object_key).sort()).toEqual(ids.map((id) => `${ref.applicationId}/${id}`).sort());
  });

  it('goes in batches of 500, each of which is told of once it is committed', async () => {
    const ref = await deletedWith(1_234);
    const left: number[] = [];
    const looks: Array<Promise<unknown>> = [];
    await forget(
      ref,
      () => void looks.push(remainsOf(files.db, ref.applicationId).then((remains) => left.push(remains.objects))),
    );
    await Promise.all(looks);
    expect(looks).toHaveLength(3);
    expect(left.every((objects) => objects >= 500)).toBe(true);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(1_234));
  });

  it('takes nothing from others, of the same account either', async () => {
    const ref = await deletedWith(3);
    const others = [files.createOwned(ref.accountId), files.createOwned()];
    for (const other of others) await insertFiles(files.db, other, 4);
    const before = await Promise.all(others.map((other) => remainsOf(files.db, other.applicationId)));
    await forget(ref);
    expect(await Promise.all(others.map((other) => remainsOf(files.db, other.applicationId)))).toEqual(before);
    expect(before[0]).toMatchObject({ files: 4, objects: 0, isMarked: false });
  });

  it('is the same when it is forgotten again, or never had a file', async () => {
    const refs = [await deletedWith(5), await deletedWith(0)];
    for (const ref of [...refs, ...refs]) await forget(ref);
    expect(await remainsOf(files.db, refs[0]?.applicationId ?? '')).toEqual(forgotten(5));
    expect(await remainsOf(files.db, refs[1]?.applicationId ?? '')).toEqual(forgotten(0));
  });

  it('is forgotten by several at once, each file by one of them', async () => {
    const ref = await deletedWith(2_600);
    await Promise.all([forget(ref), forget(ref), forget(ref), forget(ref)]);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(2_600));
  });

  it('is forgotten wholly by one that waits for another to remove what it was about to', async () => {
    const ref = await deletedWith(700);
    const other = await files.db.connect();
    await other.query('begin');
    await other.query(
      `delete from file where id in (select id from file where application_id = $1 order by created_at desc, id desc limit 500)`,
      [ref.applicationId],
    );
    const forgetting = forget(ref);
    await eventually(async () => expect(await waitersForLocks()).toBe(1));
    await other.query('commit');
    other.release();
    await forgetting;
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(200));
  });

  it('is forgotten also where its counter says less than there is', async () => {
    const ref = await deletedWith(3);
    await files.db.query('update application_usage set file_count = 1, charged_mib = 1 where application_id = $1', [
      ref.applicationId,
    ]);
    await forget(ref);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(3));
  });
});

describe('an upload to an application that is forgotten', () => {
  it('that has begun is refused, and its bytes with it; the account’s other uploads are not', async () => {
    const ref = files.createOwned();
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    await forget(ref);
    expect(await intentsOf(ref)).toEqual(['abandoned']);
    expect(await reasonOf(uploads.send(ticket, Buffer.from('late')))).toMatch(/^upload_/);
    const other = files.createOwned(ref.accountId);
    const otherTicket = await uploads.begin(other);
    await forget(ref);
    await uploads.send(otherTicket, Buffer.from('in time'));
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(0));
    expect(await remainsOf(files.db, other.applicationId)).toMatchObject({ files: 1, isMarked: false });
  });

  it('that is committed at the same moment is either refused or forgotten too', async () => {
    const refs = Array.from({ length: 16 }, () => files.createOwned());
    const uploads = createUploads(files.ctx);
    const tickets = await Promise.all(refs.map((ref) => uploads.begin(ref)));
    const sent = tickets.map((ticket) =>
      uploads.send(ticket, Buffer.from('at the same time')).then(
        () => 1,
        () => 0,
      ),
    );
    const outcomes = await Promise.all(refs.map(async (ref, i) => Promise.all([sent[i], forget(ref)])));
    const remains = await Promise.all(refs.map((ref) => remainsOf(files.db, ref.applicationId)));
    expect(remains).toEqual(outcomes.map(([stored]) => forgotten(stored ?? 0)));
  });

  it('that is being committed is waited for, and forgotten too', async () => {
    const ref = files.createOwned();
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    // The last statement of the commit waits for this.
    const holder = await files.db.connect();
    onTestFinished(() => holder.release());
    await holder.query('begin; lock table audit_entry in share mode');
    const sending = uploads.send(ticket, Buffer.from('at the same time'));
    const committing = eventually(async () => expect(await waitersForLocks()).toBe(1));
    const forgetting = committing.then(() => forget(ref));
    const bothWait = committing.then(() => eventually(async () => expect(await waitersForLocks()).toBe(2)));
    await bothWait.finally(() => holder.query('commit'));
    await Promise.all([sending, forgetting]);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(1));
  });
});

describe('forgetting that is stopped', () => {
  it.each(['before', 'after'] as const)(
    '%s any of its statements is ended by the next try, with nothing lost',
    async (moment) => {
      let position = 0;
      for (let wasStopped = true; wasStopped; position += 1) {
        const ref = await deletedWith(501);
        wasStopped = await whileFailingAt(position, moment, () => forget(ref));
        const { files: left, objects } = await remainsOf(files.db, ref.applicationId);
        expect({ position, objects: left + objects }).toEqual({ position, objects: 501 });
        await forget(ref);
        expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(501));
      }
      // Three transactions with files, the last of which finds none, the one before them, and the end.
      expect(position).toBeGreaterThan(18);
    },
    60_000,
  );

  it.each([1, 2])('by the death of its process after batch %i is ended by the next try', async (commits) => {
    const ref = await deletedWith(1_200);
    const args = [FORGET, files.url, ref.applicationId, ref.accountId, String(commits)];
    const child = spawn(process.execPath, args, { stdio: 'inherit' });
    onTestFinished(() => void child.kill('SIGKILL'));
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    const between = await remainsOf(files.db, ref.applicationId);
    expect(between).toMatchObject({ files: 1_200 - 500 * commits, objects: 500 * commits, isMarked: true });
    expect(between.usage?.fileCount).toBe(1_200 - 500 * commits);
    await forget(ref);
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(1_200));
  });
});

describe('tombstones', () => {
  it('go after 25 hours, once the application is wholly forgotten', async () => {
    const [old, young, half] = [await deletedWith(1), await deletedWith(1), await deletedWith(1)];
    for (const ref of [old, young]) await forget(ref);
    const insert = `insert into deleted_application (application_id, created_at) values ($1, now() - $2::interval)
      on conflict (application_id) do update set created_at = excluded.created_at`;
    await files.db.query(insert, [old.applicationId, '25 hours 1 minute']);
    await files.db.query(insert, [young.applicationId, '24 hours 59 minutes']);
    await files.db.query(insert, [half.applicationId, '30 hours']);
    expect(await purgeTombstones(files.ctx)).toBe(1);
    const marked = await Promise.all([old, young, half].map(({ applicationId }) => remainsOf(files.db, applicationId)));
    expect(marked.map(({ isMarked }) => isMarked)).toEqual([false, true, true]);
  });

  it('go a thousand at a time', async () => {
    await files.db.query(
      `insert into deleted_application (application_id, created_at)
        select gen_random_uuid(), now() - interval '2 days' from generate_series(1, 1500)`,
    );
    expect([await purgeTombstones(files.ctx), await purgeTombstones(files.ctx), await purgeTombstones(files.ctx)]).toEqual([
      1_000, 500, 0,
    ]);
  });
});
