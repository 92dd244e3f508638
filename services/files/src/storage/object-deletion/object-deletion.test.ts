import { newId } from '@latchkey/kit/validation/id';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { expect, it } from 'vitest';
import { useTestFiles } from '../../testing/test-files.ts';
import { objectKey } from '../object-store/object-store.ts';
import { BATCH, sweepObjectDeletions } from './object-deletion.ts';

const files = useTestFiles();
const { signal } = new AbortController();

async function put(key: string): Promise<void> {
  const body = (async function* () {
    yield Buffer.from('some bytes');
  })();
  await files.ctx.store.put(key, body, signal);
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

it('retries what the store does not remove after a period, and goes on with the rest', async () => {
  const [bad, good] = [objectKey(newId(), newId()), objectKey(newId(), newId())];
  const pending = async () => (await files.db.query('select object_key from object_deletion')).rows.map((row) => row.object_key);
  for (const key of [bad, good]) {
    await put(key);
    await files.db.query('insert into object_deletion (object_key) values ($1)', [key]);
  }
  const [badFolder] = bad.split('/');
  await sweepObjectDeletions(failing(badFolder, 60_000), signal);
  await sweepObjectDeletions(files.ctx, signal);
  expect([await files.ctx.store.stat(good), await pending()]).toEqual([undefined, [bad]]);
  await files.db.query('update object_deletion set due_at = now()');
  await sweepObjectDeletions(files.ctx, signal);
  expect([await files.ctx.store.stat(bad), await pending()]).toEqual([undefined, []]);
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
