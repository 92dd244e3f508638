import { timestampDate } from '@bufbuild/protobuf/wkt';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { eventsOf, everything, holdRow, rowOf } from '../testing/rows.ts';
import { type AppsInstance, type OwnedRef, range, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const { SOCKET, HTTP } = RuntimeKeyType;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const rotate = (ref: OwnedRef, type = SOCKET, { client }: AppsInstance = apps) => client.rotateRuntimeKey({ ...ref, type });

const limitReached = (retryAfterSeconds: number, limit = 2) => ({
  connectCode: 'ResourceExhausted',
  reason: 'rotation_limit_reached',
  kind: 'rate_limited',
  code: 'rate_limit_reached',
  metadata: {
    policy: 'rotations',
    limit: String(limit),
    windowSeconds: '3600',
    remaining: '0',
    retryAfterSeconds: String(retryAfterSeconds),
  },
});

describe('a rotated key', () => {
  it.each([
    ['socketKey', SOCKET, 'httpKey', 'socket_key'],
    ['httpKey', HTTP, 'socketKey', 'http_key'],
  ] as const)(
    'is rejected at every instance and leaves no trace, and the other key stays: %s',
    async (name, type, kept, columns) => {
      const ref = await apps.createOwned();
      const sibling = { ...ref, applicationId: (await apps.client.createApplication({ ...ref, name: 'Another' })).applicationId };
      const [before, siblingKeys] = [await apps.keysOf(ref), await apps.keysOf(sibling)];
      const row = await rowOf<Buffer>(apps.db, ref);
      apps.clock.advance(1_234);
      await rotate(ref, type);
      const after = await apps.keysOf(ref);
      for (const { client } of [apps, apps.connect()]) {
        const lookUp = (key: 'socketKey' | 'httpKey', value: string) => client.lookUpApplication({ key: { case: key, value } });
        expect(await refusalOf(lookUp(name, before[name]))).toMatchObject({ reason: 'runtime_key_invalid' });
        expect(await lookUp(name, after[name])).toMatchObject(ref);
        expect(await lookUp(kept, before[kept])).toMatchObject(ref);
      }
      expect(after[kept]).toBe(before[kept]);
      expect(after.updatedAt && timestampDate(after.updatedAt)).toEqual(apps.clock.now());
      expect(await apps.keysOf(sibling)).toEqual(siblingKeys);
      const rows = (await everything(apps.db)).join();
      for (const column of ['hash', 'sealed']) expect(rows).not.toContain(row?.[`${columns}_${column}`]?.toString('hex'));
    },
  );
});

describe('the limit of two rotations an hour', () => {
  it('holds for fifty concurrent rotations of both types through three instances, per application', async () => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const instances = [apps, apps.connect(), apps.connect()];
    const calls = range(1, 50).map((i) => rotate(ref, i % 2 ? SOCKET : HTTP, instances[i % 3]));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(await refusalOf(Promise.reject(outcome.reason))).toMatchObject(limitReached(3_600));
    expect(await eventsOf(apps.db, ref)).toHaveLength(2);
    expect(await rotate(other)).toMatchObject({ rotationsMax: 2, rotationsLeft: 1, resetSeconds: 3_600 });
  });

  it('frees one rotation exactly an hour after each, and reports it in whole seconds', async () => {
    const ref = await apps.createOwned();
    await rotate(ref, SOCKET);
    apps.clock.advance(10 * MINUTE_MS);
    await rotate(ref, HTTP);
    for (const [advanceMs, seconds] of [
      [0, 3_000],
      [1, 3_000],
      [999, 2_999],
      [50 * MINUTE_MS - 1_001, 1],
    ] as const) {
      apps.clock.advance(advanceMs);
      expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(seconds));
    }
    apps.clock.advance(1);
    await rotate(ref);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(600));
    apps.clock.advance(10 * MINUTE_MS);
    await rotate(ref);
    apps.clock.advance(HOUR_MS);
    await rotate(ref);
    expect((await rowOf(apps.db, ref))?.recent_rotations).toHaveLength(1);
  });

  it('counts neither rejected nor failed rotations', async () => {
    const ref = await apps.createOwned();
    const { applicationId } = ref;
    await refusalOf(rotate({ ...ref, accountId: ref.applicationId }));
    const failure = { table: 'application_event', operation: 'insert', applicationId, when: 'commit' } as const;
    await whileFailing(apps.db, failure, () => Promise.all([refusalOf(rotate(ref)), refusalOf(rotate(ref))]));
    await rotate(ref);
    await rotate(ref);
    apps.clock.advance(MINUTE_MS);
    await refusalOf(rotate(ref));
    apps.clock.advance(HOUR_MS - MINUTE_MS);
    await rotate(ref);
  });

  it('dates a rotation that waited for the row after the one before it', async () => {
    const ref = await apps.createOwned();
    const release = await holdRow(apps.db, ref);
    const waiting = rotate(ref);
    await waitersForLocks(apps.db, 1);
    apps.clock.advance(5_000);
    await release();
    await waiting;
    const { updatedAt } = await apps.keysOf(ref);
    expect(updatedAt && timestampDate(updatedAt)).toEqual(apps.clock.now());
  });

  it('holds if the clocks of instances differ', async () => {
    const ref = await apps.createOwned();
    const late = apps.connect({ clock: () => new Date(apps.clock.now().getTime() - 5_000) });
    await rotate(ref);
    await rotate(ref, SOCKET, late);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_595));
  });

  it('is a setting, also of fewer than were made', async () => {
    const ref = await apps.createOwned();
    const [none, five] = ['0', '5'].map((value) => apps.connect({ env: { RUNTIME_KEY_ROTATIONS_PER_HOUR: value } }));
    expect(await refusalOf(rotate(ref, SOCKET, none))).toMatchObject(limitReached(3_600, 0));
    for (let i = 0; i < 5; i += 1) {
      await rotate(ref, SOCKET, five);
      apps.clock.advance(MINUTE_MS);
    }
    expect(await refusalOf(rotate(ref, SOCKET, five))).toMatchObject(limitReached(3_300, 5));
    // Four of the five must be an hour old first; the fourth was made two minutes ago.
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_480));
  });
});

it('a rejected rotation changes nothing, and hides the limit from other accounts', async () => {
  const [ref, foreign] = await Promise.all([apps.createOwned(), apps.createOwned()]);
  await rotate(ref);
  await rotate(ref);
  const before = await everything(apps.db);
  for (const type of [RuntimeKeyType.UNSPECIFIED, 3, 2_147_483_647])
    expect(await refusalOf(rotate(ref, type))).toMatchObject({ reason: 'runtime_key_type_invalid', code: 'VALIDATION_ERROR' });
  expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_600));
  expect(await refusalOf(rotate({ ...ref, accountId: foreign.accountId }))).toEqual(NOT_FOUND);
  expect(await everything(apps.db)).toEqual(before);
});
