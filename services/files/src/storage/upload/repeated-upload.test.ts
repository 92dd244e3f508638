import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { holdProcessLock, useTestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, ONE, reasonOf, type Uploads } from '../../testing/uploads.ts';

const files = useTestFiles();
const SOME = Buffer.from('some bytes');
const WAIT = { timeoutMs: 15_000 };

let uploads: Uploads;
beforeAll(() => {
  uploads = createUploads(files.ctx);
});

/** Begins an upload of one file with one key: at the same instance each time, or another one. */
function repeatable(ref = files.createOwned(), replace = false) {
  const call = { headers: { 'idempotency-key': randomUUID() } };
  return { ref, begin: (at = uploads) => at.client.beginUpload({ ...ref, fileName: 'once', replace }, call) };
}

const stateOf = async ({ accountId }: { readonly accountId: string }) =>
  (await files.db.query('select state from upload_intent where account_id = $1', [accountId])).rows[0]?.state;

it('an idempotency key costs an upload two statements', async () => {
  const { begin } = repeatable();
  const [ref, last] = [files.createOwned(), files.createOwned()];
  const keyed = await statementsOf(async () => uploads.send((await begin()).ticket, SOME));
  const plain = await statementsOf(() => uploads.upload(ref, SOME));
  expect(keyed.length - plain.length).toBe(2);
  // The process lock costs nothing while it is held.
  const { ctx } = files.connect();
  await holdProcessLock(ctx);
  const locked = createUploads(ctx);
  expect(await statementsOf(() => locked.upload(last, SOME))).toHaveLength(plain.length);
});

it('an upload is rejected while another with its key runs, and takes over once the process of that one has ended', async () => {
  const { ref, begin } = repeatable();
  const { ctx } = files.connect();
  await holdProcessLock(ctx);
  const other = createUploads(ctx);
  const body = new PassThrough();
  onTestFinished(() => void body.destroy());
  const first = other.send((await begin(other)).ticket, body);
  await eventually(async () => expect(await stateOf(ref)).toBe('receiving'), WAIT);
  expect(await reasonOf(begin())).toBe('idempotency_in_progress');
  await ctx.processLock.stop();
  // Without the key the lease of the account is valid still.
  expect(await reasonOf(uploads.begin(ref))).toBe('upload_under_way');
  const { ticket, fileId } = await eventually(() => begin(), WAIT);
  await uploads.send(ticket, SOME);
  body.end(SOME);
  expect([(await first).id, (await begin()).stored?.id]).toEqual([fileId, fileId]);
  expect(await holdingsOf(files, ref)).toEqual(ONE);
});

it('an upload takes over from one with its key whose bytes did not follow its ticket within a second', async () => {
  const { ref, begin } = repeatable();
  const { ticket } = await begin();
  expect(await reasonOf(begin())).toBe('idempotency_in_progress');
  await files.db.query(`update upload_intent set created_at = now() - interval '1 s' where account_id = $1`, [ref.accountId]);
  await uploads.send((await begin()).ticket, SOME);
  expect(await reasonOf(uploads.send(ticket, SOME))).toBe('upload_ticket_invalid');
  expect(await holdingsOf(files, ref)).toMatchObject({ files: 1, objects: 1 });
});

it.each([false, true])('returns the result of another that was stored since its look-up (replace: %s)', async (replace) => {
  const { ref, begin } = repeatable(undefined, replace);
  const first = await begin();
  await files.db.query('create table kept as select * from upload_intent where account_id = $1', [ref.accountId]);
  const stored = await uploads.send(first.ticket, SOME);
  // Its ticket was issued after a look-up that found nothing.
  await files.db.query('update kept set id = gen_random_uuid(); insert into upload_intent select * from kept; drop table kept');
  expect(await uploads.send(first.ticket, SOME)).toEqual(stored);
  expect(await holdingsOf(files, ref)).toEqual(ONE);
  const { rows } = await files.db.query('select action from audit_entry where account_id = $1', [ref.accountId]);
  expect(rows).toEqual([{ action: 'file.uploaded' }]);
});
