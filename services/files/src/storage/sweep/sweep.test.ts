import { newId } from '@latchkey/kit/id';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING } from '../../testing/uploads.ts';
import { objectKey } from '../object-store/object-store.ts';
import { sweepAbandonedUploads, sweepObjectDeletions } from './sweep.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const signal = new AbortController().signal;
const SOME = Buffer.from('some bytes');

/** Leaves what a process leaves that dies after it stored an object. */
async function leaveRest(ref: OwnedRef, leaseSeconds: number): Promise<void> {
  const uploads = createUploads(files.ctx);
  await uploads.begin(ref);
  const { rows } = await files.db.query(
    `update upload_intent set state = 'receiving', lease_until = now() + make_interval(secs => $2) where account_id = $1 returning id`,
    [ref.accountId, leaseSeconds],
  );
  await put(objectKey(ref.applicationId, rows[0].id));
}

async function put(key: string): Promise<void> {
  await files.ctx.store.put(
    key,
    (async function* () {
      yield SOME;
    })(),
    signal,
  );
}

describe('the sweep of abandoned uploads', () => {
  it('removes what a dead process left, and nothing of an upload that runs', async () => {
    const [dead, running] = [files.createOwned(), files.createOwned()];
    await leaveRest(dead, -1);
    await leaveRest(running, 10);
    await sweepAbandonedUploads(files.ctx, signal);
    expect(await holdingsOf(files, dead)).toEqual(NOTHING);
    expect(await holdingsOf(files, running)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
  });

  it('removes more than it takes at once, by several sweepers together', async () => {
    const refs = Array.from({ length: 250 }, () => files.createOwned());
    await Promise.all(refs.map((ref) => leaveRest(ref, -1)));
    await Promise.all([1, 2, 3].map(() => sweepAbandonedUploads(files.ctx, signal)));
    const { rows } = await files.db.query('select count(*)::int as n from upload_intent where account_id = any($1)', [
      refs.map(({ accountId }) => accountId),
    ]);
    expect(rows[0].n).toBe(0);
  });

  it('tries again later what the store can’t remove now, and is not held up by it', async () => {
    const [bad, good] = [files.createOwned(), files.createOwned()];
    await leaveRest(bad, -2);
    await leaveRest(good, -1);
    const { ctx } = files.connect();
    const remove = async (key: string) => {
      if (key.startsWith(bad.applicationId)) throw new Error('not now');
      await ctx.store.remove(key);
    };
    await sweepAbandonedUploads({ ...ctx, store: Object.assign(Object.create(ctx.store), { remove }) }, signal);
    expect(await holdingsOf(files, good)).toEqual(NOTHING);
    expect(await holdingsOf(files, bad)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
    await files.db.query(`update upload_intent set lease_until = now() - interval '1 s' where account_id = $1`, [bad.accountId]);
    await sweepAbandonedUploads(files.ctx, signal);
    expect(await holdingsOf(files, bad)).toEqual(NOTHING);
  });
});

describe('a sweep that fails, as one does whose process is killed', () => {
  const failing = (sweepIntervalMs: number) => {
    const { ctx } = files.connect();
    const remove = async () => {
      throw new Error('not now');
    };
    const store = Object.assign(Object.create(ctx.store), { remove });
    return { ...ctx, store, limits: { ...ctx.limits, sweepIntervalMs } };
  };

  it('leaves what it had in hand to another after a period', async () => {
    const ref = files.createOwned();
    await leaveRest(ref, -1);
    const key = objectKey(ref.applicationId, newId());
    await put(key);
    await files.db.query('insert into object_deletion (object_key) values ($1)', [key]);
    await sweepAbandonedUploads(failing(100), signal);
    await sweepObjectDeletions(failing(100), signal);
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1, objects: 2 });
    await eventually(async () => {
      await sweepAbandonedUploads(files.ctx, signal);
      await sweepObjectDeletions(files.ctx, signal);
      expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    });
  });

  it('ends, though what it took is due again by then', async () => {
    const refs = Array.from({ length: 120 }, () => files.createOwned());
    await Promise.all(refs.map((ref) => leaveRest(ref, -1)));
    await sweepAbandonedUploads(failing(0), signal);
    await sweepAbandonedUploads(files.ctx, signal);
    expect(await holdingsOf(files, refs[0] as OwnedRef)).toEqual(NOTHING);
  });
});

describe('the sweep of objects without rows', () => {
  it('removes those that are due', async () => {
    const ref = files.createOwned();
    const [due, later] = [objectKey(ref.applicationId, newId()), objectKey(ref.applicationId, newId())];
    await Promise.all([put(due), put(later)]);
    await files.db.query(
      `insert into object_deletion (object_key, due_at) values ($1, now()), ($2, now() + interval '1 minute')`,
      [due, later],
    );
    await sweepObjectDeletions(files.ctx, signal);
    expect(await files.ctx.store.stat(due)).toBeUndefined();
    expect(await files.ctx.store.stat(later)).toBeDefined();
    const { rows } = await files.db.query('select object_key from object_deletion where object_key like $1', [
      `${ref.applicationId}/%`,
    ]);
    expect(rows).toEqual([{ object_key: later }]);
  });
});
