import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { changeVersion, heldSequences, range, trim } from '../testing/held-events.ts';
import { deliverAll, insertVersionChanges, waitersForLocks } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { APPLICATIONS_MAX, EVENTS_MAX } from './retention.ts';

const DAY_MS = 24 * 3_600_000;

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());
beforeEach(() => apps.db.query('delete from application_event'));

const held = ({ applicationId }: OwnedRef) => heldSequences(apps, applicationId);

async function countEvents(): Promise<number> {
  const { rows } = await apps.db.query<{ count: number }>('select count(*)::int from application_event');
  return rows[0]?.count ?? 0;
}

/** Writes events of many applications, delivered and as of the test's clock: so many with a sequence for each, and so many without. */
async function insertEvents(applications: number, sequenced: number, silent: number): Promise<void> {
  await apps.db.query(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at, delivered_at)
      select gen_random_uuid(), md5(a::text)::uuid, gen_random_uuid(), case when i <= $2 then i end, 'paused', '{}', $4, $4
      from generate_series(1, $1::int) a, generate_series(1, $2::int + $3::int) i`,
    [applications, sequenced, silent, apps.clock.now()],
  );
}

/** Holds the oldest event of an application as a transaction does that is not done with it, until it is released or the test ends. */
async function holdOldest(applicationId: string): Promise<() => Promise<void>> {
  const client = await apps.db.connect();
  await client.query('begin');
  await client.query('select 1 from application_event where application_id = $1 order by sequence limit 1 for update', [
    applicationId,
  ]);
  let isHeld = true;
  const release = async () => {
    if (!isHeld) return;
    isHeld = false;
    await client.query('rollback');
    client.release();
  };
  onTestFinished(release);
  return release;
}

describe('a trimming', () => {
  it('reaches every application, however many there are, and every event, however many one has', async () => {
    await insertEvents(2 * APPLICATIONS_MAX + 1, 3, 1);
    const busy = await insertVersionChanges(apps.db, 2 * EVENTS_MAX + 7, apps.clock.now());
    await deliverAll(apps.db);
    await trim(apps, { eventCount: 2 });
    expect(await heldSequences(apps, busy)).toEqual(range(2 * EVENTS_MAX + 6, 2 * EVENTS_MAX + 7));
    expect(await countEvents()).toBe((2 * APPLICATIONS_MAX + 1) * 3 + 2);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect(await countEvents()).toBe(0);
  });

  it.each([APPLICATIONS_MAX - 1, APPLICATIONS_MAX, APPLICATIONS_MAX + 1])('ends where %i applications do', async (count) => {
    await insertEvents(count, 1, 0);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    expect(await countEvents()).toBe(0);
  });

  it('removes 1,000 events at most in each of its transactions', async () => {
    await apps.db.query('create table removed (tx bigint not null)');
    await apps.db.query(`create function keep_removed() returns trigger language plpgsql as
      $$ begin insert into removed values (txid_current()); return null; end $$`);
    await apps.db.query(
      'create trigger keep_removed after delete on application_event for each row execute function keep_removed()',
    );
    await insertEvents(3, 900, 400);
    await insertVersionChanges(apps.db, 3_500, apps.clock.now());
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS);
    await trim(apps);
    const { rows } = await apps.db.query<{ count: number }>('select count(*)::int from removed group by tx order by 1 desc');
    await apps.db.query('drop function keep_removed cascade');
    // 6,200 with a sequence, then 1,200 without.
    expect(rows.map(({ count }) => count)).toEqual([...Array(7).fill(EVENTS_MAX), 200, 200]);
  });

  it('of a log with nothing to trim removes nothing', async () => {
    await insertEvents(10, 3, 1);
    const sent = await statementsOf(() => trim(apps));
    // The one for what has no sequence looks and removes at once.
    expect(sent.filter(({ text }) => /^\s*delete/.test(text))).toHaveLength(1);
    expect(await countEvents()).toBe(40);
  });

  it('waits for nobody who changes an application, nor they for it', async () => {
    const ref = await apps.createOwned();
    await changeVersion(apps, ref, 3);
    await deliverAll(apps.db);
    const release = await holdOldest(ref.applicationId);
    const trimming = trim(apps, { eventCount: 1 });
    await waitersForLocks(apps.db, 1);
    // It is in the middle of a transaction that removes events of this application.
    await changeVersion(apps, ref, 2);
    await apps.client.rotateRuntimeKey({ ...ref, type: 1 });
    await apps.client.deleteApplication(ref);
    await release();
    await trimming;
    expect(await held(ref)).toEqual([3, 4, 5, 6]);
  });

  it('leaves what is held without a gap at any moment while changes go on, and loses none of the newest', async () => {
    const refs = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const instances = [apps, apps.connect(), apps.connect()];
    let isDone = false;
    const changing = Promise.all(refs.flatMap((ref) => instances.map((instance) => changeVersion(instance, ref, 40)))).finally(
      () => {
        isDone = true;
      },
    );
    let newest = 0;
    for (let round = 0; !isDone || round < 3; round += 1) {
      await deliverAll(apps.db);
      await trim(apps, { eventCount: 5 });
      for (const ref of refs) {
        const seen = (await apps.client.listApplicationEvents(ref)).events.map(({ sequence }) => Number(sequence));
        expect(seen).toEqual(range(seen[0] ?? 0, seen.at(-1) ?? -1));
        newest = Math.max(newest, seen.length);
      }
    }
    await changing;
    expect(newest).toBeGreaterThan(0);
    await deliverAll(apps.db);
    await trim(apps, { eventCount: 5 });
    for (const ref of refs) expect(await held(ref)).toEqual(range(116, 120));
  });
});

describe('several trimmings at once', () => {
  it('do no more than one, and leave what one leaves', async () => {
    await insertEvents(700, 10, 2);
    const applicationId = await insertVersionChanges(apps.db, 10, apps.clock.now());
    await deliverAll(apps.db);
    const release = await holdOldest(applicationId);
    let ended = 0;
    const count = () => {
      ended += 1;
    };
    const sent = await statementsOf(async () => {
      const trimmings = Promise.all(range(1, 5).map(() => trim(apps, { eventCount: 4 }).finally(count)));
      // Whoever comes once it is done begins anew.
      await eventually(() => ended === 4);
      await release();
      await trimmings;
    });
    expect(await countEvents()).toBe(700 * 6 + 4);
    const looks = sent.filter(({ text }) => text.includes('with recursive'));
    expect(looks.length).toBeGreaterThanOrEqual(2);
    // Each of them may have begun before it found another at it; one alone takes two.
    expect(looks.length).toBeLessThanOrEqual(6);
  });

  it('leave it to the one that is at it, and do not wait for it', async () => {
    const applicationId = await insertVersionChanges(apps.db, 2_500, apps.clock.now());
    await deliverAll(apps.db);
    const release = await holdOldest(applicationId);
    const first = trim(apps);
    await waitersForLocks(apps.db, 1);
    const sent = await statementsOf(() => trim(apps, { eventCount: 1 }));
    expect(sent.filter(({ text }) => /application_event/.test(text))).toEqual([]);
    expect(await countEvents()).toBe(2_500);
    await release();
    await first;
    expect(await heldSequences(apps, applicationId)).toEqual(range(1_501, 2_500));
  });

  it('are no longer kept out once the one that was at it is gone in the middle', async () => {
    const applicationId = await insertVersionChanges(apps.db, 10, apps.clock.now());
    await deliverAll(apps.db);
    const release = await holdOldest(applicationId);
    const first = trim(apps, { eventCount: 1 });
    await waitersForLocks(apps.db, 1);
    const { rows } = await apps.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    expect(rows).toHaveLength(1);
    await expect(first).rejects.toThrow();
    await release();
    await trim(apps, { eventCount: 1 });
    expect(await heldSequences(apps, applicationId)).toEqual([10]);
  });
});

describe('a trimming that is ended', () => {
  it('ends after the transaction in hand', async () => {
    const applicationId = await insertVersionChanges(apps.db, 3_500, apps.clock.now());
    await deliverAll(apps.db);
    const release = await holdOldest(applicationId);
    const stopping = new AbortController();
    const trimming = trim(apps, { eventCount: 1 }, stopping.signal);
    await waitersForLocks(apps.db, 1);
    stopping.abort();
    await release();
    await trimming;
    expect(await heldSequences(apps, applicationId)).toEqual(range(1_001, 3_500));
    await trim(apps, { eventCount: 1 }, stopping.signal);
    expect(await countEvents()).toBe(2_500);
  });
});
