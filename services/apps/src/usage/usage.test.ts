import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, it } from 'vitest';
import { type OwnedRef, useTestApps } from '../testing/test-apps.ts';
import { createUsageSweep } from './usage.ts';

const DAY_MS = 24 * 3_600_000;
const NOTHING = { events: 0n, downloads: 0n, uploads: 0n, clientsMax: 0n };

const apps = useTestApps();

/** Rows without the names of messages. */
async function usageOf(ref: OwnedRef, days: number) {
  const response = await apps.client.listDailyUsage({ ...ref, days });
  return response.days.map(({ $typeName: _, ...day }) => day);
}

const dateOf = (daysAgo: number) => new Date(apps.clock.now().getTime() - daysAgo * DAY_MS).toISOString().slice(0, 10);

it('counts add up in a row a day, of which clients are the most at once; days without any are zeros', async () => {
  const { applicationId, ...account } = await apps.createOwned();
  const record = (...counts: object[]) => apps.client.recordUsage({ counts: counts.map((each) => ({ applicationId, ...each })) });
  await record({ downloads: 2, clients: 3 }, { uploads: 1 }, { applicationId: randomUUID(), uploads: 1 }, { applicationId: 'x' });
  await record({ downloads: 1, clients: 2 });
  apps.clock.advance(2 * DAY_MS);
  await record({ clients: 5 });
  await record({ clients: 4 });
  expect(await usageOf({ applicationId, ...account }, 4)).toEqual([
    { date: dateOf(3), ...NOTHING },
    { date: dateOf(2), ...NOTHING, downloads: 3n, uploads: 1n, clientsMax: 3n },
    { date: dateOf(1), ...NOTHING },
    { date: dateOf(0), ...NOTHING, clientsMax: 5n },
  ]);
});

it('events for live clients are counted when they are committed, and recorded by a stop at the latest', async () => {
  const ref = await apps.createOwned();
  const { client, service } = apps.connect();
  const set = (field: string, value: string) =>
    client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
  await set('version', '2.0');
  await set('status', 'paused');
  await set('status', 'paused');
  await refusalOf(set('version', ''));
  await client.rotateRuntimeKey({ ...ref, type: 1 });
  expect(await usageOf(ref, 1)).toMatchObject([{ events: 0n }]);
  await service.stop();
  expect(await usageOf(ref, 1)).toMatchObject([{ events: 2n }]);
});

it('is stored for 90 days, and not longer than its application', async () => {
  const [ref, deleted] = [await apps.createOwned(), await apps.createOwned()];
  const stored = async ({ applicationId }: OwnedRef) =>
    (await apps.db.query('select day from daily_usage where application_id = $1', [applicationId])).rowCount;
  for (let day = 0; day < 2; day += 1) {
    await apps.client.recordUsage({ counts: [ref, deleted].map(({ applicationId }) => ({ applicationId, uploads: 1 })) });
    apps.clock.advance(DAY_MS);
  }
  await apps.client.deleteApplication(deleted);
  expect(await stored(deleted)).toBe(0);
  const sweep = createUsageSweep({ db: apps.kysely, clock: apps.clock.now });
  for (const [days, left] of [
    [87, 2],
    [1, 1],
    [1, 0],
  ] as const) {
    apps.clock.advance(days * DAY_MS);
    await sweep(new AbortController().signal);
    expect(await stored(ref)).toBe(left);
    expect((await usageOf(ref, 90)).filter(({ uploads }) => uploads > 0n)).toHaveLength(left);
  }
});

it('is for the account of the application, of 1 to 90 days, and takes 1,000 counts at once', async () => {
  const ref = await apps.createOwned();
  const read = (request: object) => refusalOf(apps.client.listDailyUsage({ ...ref, days: 1, ...request }));
  for (const other of [{ accountId: randomUUID() }, { applicationId: randomUUID() }, { applicationId: 'x' }])
    expect(await read(other)).toMatchObject({ reason: 'application_not_found' });
  for (const days of [0, -1, 91]) expect(await read({ days })).toMatchObject({ reason: 'page_token_invalid' });
  const counts = Array(1_001).fill({ applicationId: ref.applicationId, uploads: 1 });
  expect(await refusalOf(apps.client.recordUsage({ counts }))).toMatchObject({ reason: 'page_token_invalid' });
  expect(await usageOf(ref, 1)).toMatchObject([NOTHING]);
});
