import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { whileFailingAt } from '../../testing/failing-statement.ts';
import { createFakeDeletions, type FakeDeletions } from '../../testing/fake-deletions.ts';
import { forgotten, insertFiles, remainsOf } from '../../testing/remains.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createListDeleted } from './deleted-application.client.ts';
import { forgetApplication } from './deleted-application.ts';
import { createDeletionCatchUp } from './deletion-catch-up.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let files: TestFiles;
let deletions: FakeDeletions;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());
beforeEach(() => {
  deletions = createFakeDeletions();
});

/** Looks as a process does that has just started. */
function startCatchUp(onObjectsToRemove = () => {}) {
  const catchUp = createDeletionCatchUp(files.ctx, createListDeleted(deletions.transport), onObjectsToRemove);
  return (signal = new AbortController().signal) => catchUp(signal);
}

/** An application with a file, deleted so long ago. */
async function deletedFor(ageMs: number) {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, 1);
  deletions.add(ref, new Date(files.clock.now().getTime() - ageMs));
  return ref;
}

const isForgotten = async ({ applicationId }: { applicationId: string }) =>
  expect(await remainsOf(files.db, applicationId)).toEqual(forgotten(1));

describe('a look for deletions', () => {
  it('forgets what no job told of, however many pages there are, and says that objects are to be removed', async () => {
    const refs = [];
    for (let i = 0; i < 10; i += 1) refs.push(await deletedFor(i * HOUR_MS));
    let calls = 0;
    await startCatchUp(() => {
      calls += 1;
    })();
    for (const ref of refs) await isForgotten(ref);
    expect(calls).toBe(10);
  });

  it('goes back 24 hours at first, then 5 minutes behind the look before', async () => {
    const catchUp = startCatchUp();
    const startedAt = files.clock.now().getTime();
    await catchUp();
    files.clock.advance(30_000);
    await catchUp();
    files.clock.advance(HOUR_MS);
    await catchUp();
    const ages = deletions.asked.map((since) => startedAt - since.getTime());
    expect(ages).toEqual([24 * HOUR_MS, 5 * MINUTE_MS, 5 * MINUTE_MS - 30_000]);
  });

  it('finds what was deleted between two looks, by a clock that is behind', async () => {
    const catchUp = startCatchUp();
    await catchUp();
    files.clock.advance(30_000);
    const ref = await deletedFor(4 * MINUTE_MS);
    await catchUp();
    await isForgotten(ref);
  });

  it('touches nothing that is forgotten already', async () => {
    const ref = await deletedFor(0);
    await forgetApplication(files.ctx, ref, () => {});
    const sent = await statementsOf(() => startCatchUp()());
    expect(sent.map(({ text }) => text.trim().split(' ', 1)[0])).toEqual(['select', 'select']);
  });

  it('ends what somebody began and was stopped at, also where apps knows nothing of it any more', async () => {
    const ref = files.createOwned();
    await insertFiles(files.db, ref, 1);
    await files.db.query('insert into deleted_application (application_id) values ($1)', [ref.applicationId]);
    await startCatchUp()();
    await isForgotten(ref);
  });

  it('that fails goes as far back the next time, also when it had already come far', async () => {
    const catchUp = startCatchUp();
    deletions.failing = true;
    await expect(catchUp()).rejects.toThrow();
    deletions.failing = false;
    const refs = [await deletedFor(23 * HOUR_MS), await deletedFor(HOUR_MS)];
    files.clock.advance(30_000);
    const wasStopped = await whileFailingAt(4, 'before', () =>
      catchUp().catch((err: AggregateError) => Promise.reject(err.errors[0])),
    );
    expect(wasStopped).toBe(true);
    const remains = await Promise.all(refs.map(({ applicationId }) => remainsOf(files.db, applicationId)));
    expect(remains.map((one) => one.files)).toEqual([1, 0]);
    files.clock.advance(30_000);
    await catchUp();
    for (const ref of refs) await isForgotten(ref);
    const ages = deletions.asked.map((since) => files.clock.now().getTime() - since.getTime());
    expect(ages).toEqual([24 * HOUR_MS + 30_000, 24 * HOUR_MS]);
  });

  it('ends when it is told to, and goes as far back the next time', async () => {
    const refs = [await deletedFor(2 * HOUR_MS), await deletedFor(HOUR_MS)];
    const stop = new AbortController();
    const catchUp = startCatchUp(() => stop.abort());
    await catchUp(stop.signal);
    const remains = await Promise.all(refs.map(({ applicationId }) => remainsOf(files.db, applicationId)));
    expect(remains.map((one) => one.files)).toEqual([0, 1]);
    await catchUp();
    for (const ref of refs) await isForgotten(ref);
  });
});
