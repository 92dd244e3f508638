import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventsOf, insertVersionChanges } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const setText = (ref: OwnedRef, field: string, value: string) =>
  apps.client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });

async function list(request: { applicationId: string; afterSequence?: bigint; pageSize?: number }) {
  return (await apps.client.listApplicationEvents(request)).events;
}

async function sequences(request: Parameters<typeof list>[0]) {
  return (await list(request)).map(({ sequence }) => Number(sequence));
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('the events of an application', () => {
  it('are what live clients hear of, in order, as they were written', async () => {
    const ref = await apps.createOwned();
    const changes = [
      () => setText(ref, 'status', 'paused'),
      () => apps.client.rotateRuntimeKey({ ...ref, type: 1 }),
      () => setText(ref, 'status', 'online'),
      () => setText(ref, 'version', '2.0'),
      () => apps.client.deleteApplication(ref),
    ];
    for (const change of changes) {
      apps.clock.advance(1_234);
      await change();
    }
    const events = await list(ref);
    expect(events.map(({ sequence, event }) => [sequence, event?.event])).toMatchObject([
      [1n, { case: 'paused', value: { status: 'paused' } }],
      [2n, { case: 'resumed', value: { status: 'online' } }],
      [3n, { case: 'versionChanged', value: { version: '2.0', previousVersion: '1.0' } }],
      [4n, { case: 'deleted', value: {} }],
    ]);
    const rows = (await eventsOf(apps.db, ref.applicationId)).filter(({ sequence }) => sequence !== null);
    const seen = events.map(({ id, createdAt }) => [id, createdAt && timestampDate(createdAt)]);
    expect(seen).toEqual(rows.map((row) => [row.id, row.created_at]));
  });

  it('are those of no other application, and of none whose id is unknown or none', async () => {
    const [ref, other] = [await apps.createOwned(), await apps.createOwned()];
    await setText(ref, 'version', '2.0');
    await setText(other, 'version', '3.0');
    expect((await list(other)).map(({ event }) => event?.event.value)).toMatchObject([{ version: '3.0' }]);
    expect(await list({ applicationId: ref.applicationId.toUpperCase() })).toHaveLength(1);
    for (const applicationId of [randomUUID(), '', 'x', '\0', '\ud800', `${ref.applicationId} `, ref.applicationId.slice(1)]) {
      expect(await list({ applicationId })).toEqual([]);
    }
    expect(await list(await apps.createOwned())).toEqual([]);
  });

  it.each<[bigint, number[]]>([
    [0n, [1, 2, 3]],
    [1n, [2, 3]],
    [2n, [3]],
    [3n, []],
    [4n, []],
    [-1n, [1, 2, 3]],
    [-(2n ** 63n), [1, 2, 3]],
    [2n ** 53n + 1n, []],
    [2n ** 63n - 1n, []],
  ])('after %d are the later ones', async (afterSequence, expected) => {
    const ref = await apps.createOwned();
    for (const version of ['2.0', '3.0', '4.0']) await setText(ref, 'version', version);
    expect(await sequences({ ...ref, afterSequence })).toEqual(expected);
  });

  it('come in pages, each after the last of the one before', async () => {
    const applicationId = await insertVersionChanges(apps.db, 10);
    const pages: number[][] = [];
    let last = 0;
    do {
      pages.push(await sequences({ applicationId, afterSequence: BigInt(last), pageSize: 4 }));
      last = pages.at(-1)?.at(-1) ?? 0;
    } while (last > 0);
    expect(pages).toEqual([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10], []]);
  });

  it('come in pages of 1,000 at most, and as many without a size', async () => {
    const applicationId = await insertVersionChanges(apps.db, 1_001);
    expect(await sequences({ applicationId })).toEqual(upTo(1_000));
    expect(await sequences({ applicationId, pageSize: 1_000 })).toEqual(upTo(1_000));
    expect(await sequences({ applicationId, afterSequence: 1_000n })).toEqual([1_001]);
  });

  it.each([-1, 1_001, -2_147_483_648, 2_147_483_647])('are refused for a page size that can’t be: %d', async (pageSize) => {
    const invalid = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
    for (const applicationId of [randomUUID(), 'x']) {
      expect(await refusalOf(apps.client.listApplicationEvents({ applicationId, pageSize }))).toMatchObject(invalid);
    }
  });

  it('have no gap at any moment, however many changes are made at once', async () => {
    const ref = await apps.createOwned();
    const instances = [apps, apps.connect(), apps.connect()];
    let isDone = false;
    const changes = Promise.all(
      Array.from({ length: 90 }, (_, i) => {
        const value = { case: 'stringValue', value: `2.${i}` } as const;
        return instances[i % 3]?.client.updateApplicationSetting({ ...ref, field: 'version', value });
      }),
    ).finally(() => {
      isDone = true;
    });
    let looks = 0;
    for (; !isDone; looks += 1) {
      const seen = await sequences(ref);
      expect(seen).toEqual(upTo(seen.length));
    }
    await changes;
    expect(looks).toBeGreaterThan(2);
    expect(await sequences(ref)).toEqual(upTo(90));
  });

  it('say what this release knows of them where a later one has written more', async () => {
    const ref = await apps.createOwned();
    await setText(ref, 'version', '2.0');
    await apps.db.query(`update application_event set data = data || '{"reason": "x"}' where application_id = $1`, [
      ref.applicationId,
    ]);
    const [logged] = await list(ref);
    expect(logged?.event?.event).toMatchObject({ case: 'versionChanged', value: { version: '2.0', previousVersion: '1.0' } });
  });
});
