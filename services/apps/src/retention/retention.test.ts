import { eventually } from '@latchkey/testkit/eventually';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { explain, statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeEach, describe, expect, it } from 'vitest';
import { deliverAll, insertVersionChanges } from '../testing/rows.ts';
import { type OwnedRef, range, useTestApps } from '../testing/test-apps.ts';
import { BATCH_MAX, createRetentionSweep } from './retention.ts';

const DAY_MS = 24 * 3_600_000;

const apps = useTestApps();
beforeEach(() => apps.db.query('delete from application_event'));

type Retention = Parameters<typeof createRetentionSweep>[2];

const sweep = (retention: Retention = {}, signal = new AbortController().signal): Promise<unknown> =>
  createRetentionSweep(apps.kysely, apps.clock.now, retention)(signal);

/** Sequences in the log. */
async function retained({ applicationId }: Pick<OwnedRef, 'applicationId'>): Promise<number[]> {
  const { rows } = await apps.db.query<{ sequence: string }>(
    'select sequence from application_event where application_id = $1 and sequence is not null order by sequence',
    [applicationId],
  );
  return rows.map(({ sequence }) => Number(sequence));
}

const countAll = async () => (await apps.db.query('select 1 from application_event')).rowCount;

async function changeVersion(ref: OwnedRef, count = 1): Promise<void> {
  for (let i = 0; i < count; i += 1) await apps.set(ref, 'version', `${apps.clock.now().getTime()}.${Math.random()}`);
}

async function withEvents(count: number): Promise<OwnedRef> {
  const ref = await apps.createOwned();
  await changeVersion(ref, count);
  await deliverAll(apps.db);
  return ref;
}

describe('events for live clients', () => {
  it('are deleted at the age of 24 hours, to the millisecond', async () => {
    const ref = await withEvents(1);
    apps.clock.advance(1);
    await changeVersion(ref);
    await deliverAll(apps.db);
    for (const [elapsedMs, expected] of [
      [DAY_MS - 2, [1, 2]],
      [1, [2]],
      [1, []],
    ] as const) {
      apps.clock.advance(elapsedMs);
      await sweep();
      expect(await retained(ref)).toEqual(expected);
    }
    await changeVersion(ref);
    expect(await retained(ref)).toEqual([3]);
  });

  it('are the newest 1,000 of each application at most', async () => {
    const [full, over] = await Promise.all([1_000, 1_001].map((count) => insertVersionChanges(apps.db, count, apps.clock.now())));
    await deliverAll(apps.db);
    await sweep();
    expect(await retained({ applicationId: full ?? '' })).toEqual(range(1, 1_000));
    expect(await retained({ applicationId: over ?? '' })).toEqual(range(2, 1_001));
  });

  it('are retained while an older one waits for delivery, which leaves no gap', async () => {
    const ref = await withEvents(6);
    await apps.db.query('update application_event set delivered_at = null where sequence in (3, 5)');
    apps.clock.advance(DAY_MS);
    await sweep({ eventCount: 2 });
    expect(await retained(ref)).toEqual([3, 4, 5, 6]);
  });

  it('are retained after a younger one, where the clocks of processes differ', async () => {
    const ref = await withEvents(1);
    for (const advanceMs of [5_000, -5_000]) {
      apps.clock.advance(advanceMs);
      await changeVersion(ref);
    }
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS);
    await sweep();
    expect(await retained(ref)).toEqual([2, 3]);
  });

  it('are deleted for every application, however many events there are', async () => {
    const applicationId = await insertVersionChanges(apps.db, 2 * BATCH_MAX + 7, apps.clock.now());
    const others = await Promise.all([withEvents(3), withEvents(1)]);
    await deliverAll(apps.db);
    await sweep({ eventCount: 2 });
    expect(await retained({ applicationId })).toEqual(range(2 * BATCH_MAX + 6, 2 * BATCH_MAX + 7));
    expect(await Promise.all(others.map(retained))).toEqual([[2, 3], [1]]);
  });
});

it('each statement visits the next applications only, and few rows of each', async () => {
  await apps.db.query(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at, delivered_at)
      select gen_random_uuid(), application_id, application_id, s, 'paused', '{}', $1, $1
      from (select gen_random_uuid() as application_id from generate_series(1, 500)) a, generate_series(1, 20) s`,
    [apps.clock.now()],
  );
  await apps.db.query('analyze application_event');
  const statements = (await statementsOf(() => sweep({ applicationsMax: 100 }))).filter(({ text }) => text.includes('deleted'));
  expect(statements).toHaveLength(6);
  for (const statement of statements) {
    const nodes = await explain(apps.db, statement);
    const rows = nodes.filter((node) => node['Relation Name'] === 'application_event');
    const visited = rows.reduce((sum, node) => {
      const each = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
      return sum + each * node['Actual Loops'];
    }, 0);
    expect(visited).toBeLessThan(100 * 5);
  }
});

it('a rotation is deleted by age alone, once it was delivered', async () => {
  const ref = await apps.createOwned();
  await apps.client.rotateRuntimeKey({ ...ref, type: 1 });
  await deliverAll(apps.db);
  await apps.client.rotateRuntimeKey({ ...ref, type: 2 });
  await sweep({ eventCount: 1 });
  expect(await countAll()).toBe(2);
  apps.clock.advance(DAY_MS);
  await sweep();
  expect(await countAll()).toBe(1);
});

it('a deletion is retained for 30 days', async () => {
  const ref = await withEvents(2);
  await apps.client.deleteApplication(ref);
  await deliverAll(apps.db);
  apps.clock.advance(30 * DAY_MS - 1);
  await sweep({ eventCount: 1 });
  expect(await retained(ref)).toEqual([3]);
  apps.clock.advance(1);
  await sweep();
  expect(await retained(ref)).toEqual([]);
});

it('a sweep leaves a log to the process that sweeps it, does not block changes, and ends early when it is stopped', async () => {
  const applicationId = await insertVersionChanges(apps.db, 2 * BATCH_MAX, apps.clock.now());
  const ref = await withEvents(1);
  await deliverAll(apps.db);
  const oldest = 'select 1 from application_event where application_id = $1 order by sequence limit 1 for update';
  const release = await holdLocks(apps.db, oldest, [applicationId]);
  const stopping = new AbortController();
  const first = sweep({ eventCount: 1 }, stopping.signal);
  await waitersForLocks(apps.db, 1);
  await sweep({ eventCount: 1 });
  await changeVersion(ref, 2);
  stopping.abort();
  await release();
  await first;
  expect(await retained({ applicationId })).toEqual(range(BATCH_MAX + 1, 2 * BATCH_MAX));
});

it('the service sweeps', async () => {
  const ref = await withEvents(2);
  apps.clock.advance(DAY_MS);
  await apps.connect().service.start();
  await eventually(async () => expect(await retained(ref)).toEqual([]));
});
