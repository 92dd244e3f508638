import { newId } from '@latchkey/kit/validation/id';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { createUploads, expireLease, holdingsOf, NOTHING } from '../../testing/uploads.ts';
import { objectKey } from '../object-store/object-store.ts';
import { BATCH, sweepAbandonedUploads, sweepObjectDeletions } from './object-deletion.ts';

const files = useTestFiles();
const { signal } = new AbortController();

async function put(key: string): Promise<void> {
  const body = (async function* () {
    yield Buffer.from('some bytes');
  })();
  await files.ctx.store.put(key, body, signal);
}

/** Leaves what a process leaves that dies after it stored an object. */
async function leaveRest(ref: OwnedRef): Promise<void> {
  await createUploads(files.ctx).begin(ref);
  const text = `update upload_intent set state = 'receiving' where account_id = $1 returning id`;
  const { rows } = await files.db.query(text, [ref.accountId]);
  await put(objectKey(ref.applicationId, rows[0].id));
}

/** A context whose store does not remove the objects of an application, or of any. */
function failing(applicationId = '', sweepIntervalMs = 0) {
  const { ctx } = files.connect();
  const remove = async (...keys: string[]) => {
    if (keys.some((key) => key.startsWith(applicationId))) throw new Error('not now');
    await ctx.store.remove(...keys);
  };
  return { ...ctx, store: { ...ctx.store, remove }, limits: { ...ctx.limits, sweepIntervalMs } };
}

it('removes what dead processes left, and nothing of an upload that runs', async () => {
  const [dead, running] = [files.createOwned(), files.createOwned()];
  for (const ref of [dead, running]) await leaveRest(ref);
  await expireLease(files, dead);
  await sweepAbandonedUploads(files.ctx, signal);
  expect(await holdingsOf(files, dead)).toEqual(NOTHING);
  expect(await holdingsOf(files, running)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
});

it('removes more than one batch, with concurrent sweepers', async () => {
  await files.db.query(
    `insert into upload_intent (id, account_id, application_id, display_name, byte_size_max, ticket_hash, deadline_at, lease_until)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'x', 1, sha256(i::text::bytea), now(), now() - interval '1 s'
      from generate_series(0, $1::int) i`,
    [BATCH],
  );
  // Ends, though everything is due again by then.
  await sweepAbandonedUploads(failing(), signal);
  await Promise.all([1, 2, 3].map(() => sweepAbandonedUploads(files.ctx, signal)));
  expect((await files.db.query('select from upload_intent where lease_until < now()')).rowCount).toBe(0);
});

it('retries what the store does not remove after a period, and goes on with the rest', async () => {
  const [bad, good] = [files.createOwned(), files.createOwned()];
  for (const ref of [bad, good]) {
    await leaveRest(ref);
    await expireLease(files, ref);
  }
  await sweepAbandonedUploads(failing(bad.applicationId, 60_000), signal);
  await sweepAbandonedUploads(files.ctx, signal);
  expect(await holdingsOf(files, good)).toEqual(NOTHING);
  expect(await holdingsOf(files, bad)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
  await expireLease(files, bad);
  await sweepAbandonedUploads(files.ctx, signal);
  expect(await holdingsOf(files, bad)).toEqual(NOTHING);
});

it('removes objects whose scheduled removal is due, in eight concurrent groups, with few statements', async () => {
  const applicationId = newId();
  const [due, later] = [objectKey(applicationId, newId()), objectKey(applicationId, newId())];
  await Promise.all([put(due), put(later)]);
  const schedule = 'insert into object_deletion (object_key, due_at) values ($1, now() + $2::interval)';
  for (const [key, wait] of [
    [due, '0 s'],
    [later, '1 minute'],
  ])
    await files.db.query(schedule, [key, wait]);
  await files.db.query(`insert into object_deletion select $1 || '/' || gen_random_uuid() from generate_series(2, $2)`, [
    newId(),
    2 * BATCH,
  ]);
  await sweepObjectDeletions(failing(), signal);
  const { ctx } = files.connect();
  let [running, most, calls] = [0, 0, 0];
  const remove = async (...keys: string[]) => {
    calls += 1;
    running += 1;
    most = Math.max(most, running);
    await ctx.store.remove(...keys);
    running -= 1;
  };
  const statements = await statementsOf(() => sweepObjectDeletions({ ...ctx, store: { ...ctx.store, remove } }, signal));
  expect([most, calls]).toEqual([8, 16]);
  // Two batches and the end: a claim each, and a statement for each group.
  expect(statements).toHaveLength(3 + 16);
  expect([await files.ctx.store.stat(due), await files.ctx.store.stat(later)]).toEqual([undefined, { byteSize: 10 }]);
  expect((await files.db.query('select object_key from object_deletion')).rows).toEqual([{ object_key: later }]);
});
