import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeVersion, heldSequences, range, trim } from '../testing/held-events.ts';
import { deliverAll, eventsOf, insertVersionChanges } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const held = ({ applicationId }: OwnedRef) => heldSequences(apps, applicationId);

async function deletions() {
  const { applications } = await apps.client.listDeletedApplications({});
  return applications.map(({ applicationId }) => applicationId);
}

describe('what live clients hear of', () => {
  it('is kept until it is 24 hours old, to the millisecond', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref);
    apps.clock.advance(1);
    await changeVersion(apps, ref, 2);
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS - 2);
    await trim(apps);
    expect(await held(ref)).toEqual([1, 2, 3]);
    apps.clock.advance(1);
    await trim(apps);
    expect(await held(ref)).toEqual([2, 3]);
    apps.clock.advance(1);
    await trim(apps);
    expect(await held(ref)).toEqual([]);
  });

  it('is kept while it is among the newest 1,000 of its application, to the event', async () => {
    const [full, over] = await Promise.all([1_000, 1_001].map((count) => insertVersionChanges(apps.db, count, apps.clock.now())));
    await deliverAll(apps.db);
    await trim(apps);
    expect(await heldSequences(apps, full ?? '')).toEqual(range(1, 1_000));
    expect(await heldSequences(apps, over ?? '')).toEqual(range(2, 1_001));
  });

  it('goes by whichever comes first', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref, 6);
    apps.clock.advance(HOUR_MS);
    await changeVersion(apps, ref, 2);
    await deliverAll(apps.db);
    await trim(apps, { eventHours: 1, eventCount: 5 });
    expect(await held(ref)).toEqual([7, 8]);
    await trim(apps, { eventHours: 2, eventCount: 1 });
    expect(await held(ref)).toEqual([8]);
  });

  it('is counted from the newest there is, and numbered on from it when all are gone', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref, 5);
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect(await held(ref)).toEqual([]);
    await changeVersion(apps, ref, 3);
    await deliverAll(apps.db);
    await trim(apps, { eventCount: 2 });
    expect(await held(ref)).toEqual([7, 8]);
    const { events } = await apps.client.listApplicationEvents({ ...ref, afterSequence: 3n, pageSize: 1 });
    expect(events.map(({ sequence }) => sequence)).toEqual([7n]);
  });

  it('is never taken away while it is on its way, nor what comes after it', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref, 6);
    await deliverAll(apps.db);
    const undeliver = 'update application_event set delivered_at = null where application_id = $1 and sequence in (3, 5)';
    await apps.db.query(undeliver, [ref.applicationId]);
    apps.clock.advance(DAY_MS);
    await trim(apps, { eventCount: 2 });
    expect(await held(ref)).toEqual([3, 4, 5, 6]);
    await deliverAll(apps.db);
    await trim(apps);
    expect(await held(ref)).toEqual([]);
  });

  it('has no gap where the clocks of processes differ: what comes after a young event stays with it', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref);
    apps.clock.advance(5_000);
    await changeVersion(apps, ref);
    apps.clock.advance(-5_000);
    await changeVersion(apps, ref, 2);
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect(await held(ref)).toEqual([2, 3, 4]);
    apps.clock.advance(5_000);
    await trim(apps);
    expect(await held(ref)).toEqual([]);
  });

  it('of one application says nothing of another', async () => {
    const [busy, quiet] = [await apps.createOwned(), await apps.createOwned()];
    await changeVersion(apps, quiet, 2);
    await changeVersion(apps, busy, 5);
    await deliverAll(apps.db);
    await trim(apps, { eventCount: 3 });
    expect([await held(busy), await held(quiet)]).toEqual([
      [3, 4, 5],
      [1, 2],
    ]);
  });
});

describe('a rotation', () => {
  const rotate = (ref: OwnedRef, type: number) => apps.client.rotateRuntimeKey({ ...ref, type });
  const count = async (ref: OwnedRef) => (await eventsOf(apps.db, ref.applicationId)).length;

  it('is kept by age alone, to the millisecond', async () => {
    const ref = await apps.createOwned();
    await rotate(ref, 1);
    apps.clock.advance(1);
    await rotate(ref, 2);
    await changeVersion(apps, ref);
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS - 2);
    await trim(apps, { eventCount: 1 });
    expect(await count(ref)).toBe(3);
    apps.clock.advance(1);
    await trim(apps);
    expect(await count(ref)).toBe(2);
    apps.clock.advance(1);
    await trim(apps);
    expect(await count(ref)).toBe(0);
  });

  it('is never taken away while it is on its way', async () => {
    const ref = await apps.createOwned();
    await rotate(ref, 1);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect(await count(ref)).toBe(1);
    await deliverAll(apps.db);
    await trim(apps);
    expect(await count(ref)).toBe(0);
  });
});

describe('a deletion', () => {
  const deleted = async ({ afterMs = 0 } = {}) => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref, 2);
    apps.clock.advance(afterMs);
    await apps.client.deleteApplication(ref);
    await deliverAll(apps.db);
    return ref;
  };

  it('is kept until it is 30 days old, to the millisecond, long after what came before it', async () => {
    const ref = await deleted();
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect([await held(ref), await deletions()]).toEqual([[3], [ref.applicationId]]);
    apps.clock.advance(29 * DAY_MS - 1);
    await trim(apps, { eventCount: 1 });
    expect([await held(ref), await deletions()]).toEqual([[3], [ref.applicationId]]);
    apps.clock.advance(1);
    await trim(apps);
    expect([await held(ref), await deletions()]).toEqual([[], []]);
  });

  it('is kept as long as other events where that is longer', async () => {
    const ref = await deleted({ afterMs: HOUR_MS });
    apps.clock.advance(2 * DAY_MS);
    await trim(apps, { eventHours: 49, deletionDays: 1 });
    expect(await held(ref)).toEqual([3]);
    apps.clock.advance(HOUR_MS);
    await trim(apps, { eventHours: 49, deletionDays: 1 });
    expect(await held(ref)).toEqual([]);
  });

  it('is never taken away while it is on its way', async () => {
    const ref = await apps.createOwned();
    await apps.client.deleteApplication(ref);
    apps.clock.advance(31 * DAY_MS);
    await trim(apps);
    expect(await deletions()).toEqual([ref.applicationId]);
  });
});
