import { timestampDate } from '@bufbuild/protobuf/wkt';
import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whileFailing } from '../testing/failing-table.ts';
import { eventsOf, everything, rowOf, waitersForLocks } from '../testing/rows.ts';
import { type AppsInstance, type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const { SOCKET, HTTP } = RuntimeKeyType;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const rotate = (ref: OwnedRef, type = SOCKET, instance: AppsInstance = apps) =>
  instance.client.rotateRuntimeKey({ ...ref, type });

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

async function keysOf({ accountId, applicationId }: OwnedRef) {
  const { applications } = await apps.client.listApplications({ accountId, filter: { applicationIds: [applicationId] } });
  const keys = applications[0]?.runtimeKeys;
  if (!keys?.updatedAt) throw new Error('The application has no keys');
  return { socketKey: keys.socketKey, httpKey: keys.httpKey, updatedAt: timestampDate(keys.updatedAt) };
}

/** How many of the calls were answered with success; each other one must have reached the limit. */
async function successesOf(calls: ReadonlyArray<Promise<unknown>>): Promise<number> {
  const settled = await Promise.allSettled(calls);
  for (const call of settled) {
    if (call.status === 'rejected') expect(await refusalOf(Promise.reject(call.reason))).toMatchObject(limitReached(3_600));
  }
  return settled.filter(({ status }) => status === 'fulfilled').length;
}

describe('a rotated key', () => {
  it.each([
    ['socketKey', SOCKET, 'httpKey'],
    ['httpKey', HTTP, 'socketKey'],
  ] as const)(
    'is refused at once, at every instance, and the other key of the application goes on: %s',
    async (name, type, kept) => {
      const ref = await apps.createOwned();
      const other = apps.connect();
      const before = await keysOf(ref);
      apps.clock.advance(1_234);
      await rotate(ref, type);
      const after = await keysOf(ref);
      for (const { client } of [apps, other]) {
        const lookUp = (key: 'socketKey' | 'httpKey', value: string) => client.lookUpApplication({ key: { case: key, value } });
        expect(await refusalOf(lookUp(name, before[name]))).toMatchObject({ reason: 'runtime_key_invalid' });
        expect(await lookUp(name, after[name])).toMatchObject(ref);
        expect(await lookUp(kept, before[kept])).toMatchObject(ref);
      }
      expect(after[name]).toMatch(type === SOCKET ? /^lk_sock_[0-9A-Za-z]{32}$/ : /^lk_http_[0-9A-Za-z]{32}$/);
      expect(after[kept]).toBe(before[kept]);
      expect(after.updatedAt.getTime() - before.updatedAt.getTime()).toBe(1_234);
    },
  );

  it.each([
    ['socket_key', SOCKET, 'http_key'],
    ['http_key', HTTP, 'socket_key'],
  ] as const)('leaves neither hash nor ciphertext behind: %s', async (name, type, kept) => {
    const ref = await apps.createOwned();
    const before = await rowOf<Buffer>(apps.db, ref.applicationId);
    await rotate(ref, type);
    const after = await rowOf<Buffer>(apps.db, ref.applicationId);
    const rows = (await everything(apps.db)).join();
    for (const column of [`${name}_hash`, `${name}_sealed`]) {
      expect(before?.[column]).toBeInstanceOf(Buffer);
      expect(rows).not.toContain(before?.[column]?.toString('hex'));
      expect(after?.[column]).not.toEqual(before?.[column]);
    }
    for (const column of [`${kept}_hash`, `${kept}_sealed`]) expect(after?.[column]).toEqual(before?.[column]);
  });

  it('belongs to the application that was named and to no other of the account', async () => {
    const ref = await apps.createOwned();
    const { applicationId } = await apps.client.createApplication({ accountId: ref.accountId, name: 'Another' });
    const other = { ...ref, applicationId };
    const before = await keysOf(other);
    await rotate(ref);
    expect(await keysOf(other)).toEqual(before);
  });
});

describe('the limit of two rotations an hour', () => {
  it('lets exactly two of twelve at once pass, of both types together', async () => {
    const ref = await apps.createOwned();
    expect(await successesOf(Array.from({ length: 12 }, (_, i) => rotate(ref, i % 2 ? SOCKET : HTTP)))).toBe(2);
    expect(await eventsOf(apps.db, ref.applicationId)).toHaveLength(2);
  });

  it('lets exactly two of fifty at once pass through three instances', async () => {
    const ref = await apps.createOwned();
    const instances = [apps, apps.connect(), apps.connect()];
    const calls = Array.from({ length: 50 }, (_, i) => rotate(ref, i % 2 ? SOCKET : HTTP, instances[i % 3]));
    expect(await successesOf(calls)).toBe(2);
    expect(await eventsOf(apps.db, ref.applicationId)).toHaveLength(2);
  });

  it('is each application’s own', async () => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await rotate(ref);
    await rotate(ref);
    await rotate(other);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_600));
  });

  it('frees one rotation exactly an hour after each, and says in whole seconds when', async () => {
    const ref = await apps.createOwned();
    await rotate(ref, SOCKET);
    apps.clock.advance(10 * MINUTE_MS);
    await rotate(ref, HTTP);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_000));
    apps.clock.advance(1);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_000));
    apps.clock.advance(999);
    expect(await refusalOf(rotate(ref, HTTP))).toMatchObject(limitReached(2_999));
    apps.clock.advance(48 * MINUTE_MS + 58_000);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(61));
    apps.clock.advance(60_999);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(1));
    apps.clock.advance(1);
    await rotate(ref);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(600));
    apps.clock.advance(10 * MINUTE_MS - 1);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(1));
    apps.clock.advance(1);
    await rotate(ref);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_000));
    expect(await eventsOf(apps.db, ref.applicationId)).toHaveLength(4);
  });

  it('can be used in full again after an hour without rotations, and no more than that', async () => {
    const ref = await apps.createOwned();
    for (let round = 0; round < 3; round += 1) {
      expect(await successesOf(Array.from({ length: 5 }, () => rotate(ref)))).toBe(2);
      apps.clock.advance(HOUR_MS);
    }
    expect((await rowOf(apps.db, ref.applicationId))?.recent_rotations).toHaveLength(2);
  });

  it('does not count what was refused or failed', async () => {
    const ref = await apps.createOwned();
    const { applicationId } = ref;
    await refusalOf(rotate(ref, RuntimeKeyType.UNSPECIFIED));
    await refusalOf(rotate({ ...ref, accountId: ref.applicationId }));
    for (const table of ['application_event', 'application'] as const) {
      const failure = { table, operation: table === 'application' ? 'update' : 'insert', applicationId, when: 'commit' } as const;
      await whileFailing(apps.db, failure, () => Promise.all([refusalOf(rotate(ref)), refusalOf(rotate(ref))]));
    }
    await rotate(ref);
    await rotate(ref);
    for (let i = 0; i < 5; i += 1) {
      apps.clock.advance(MINUTE_MS);
      await refusalOf(rotate(ref));
    }
    apps.clock.advance(HOUR_MS - 5 * MINUTE_MS);
    await rotate(ref);
  });

  it('dates a rotation that waited for another one after it', async () => {
    const ref = await apps.createOwned();
    const holder = await apps.db.connect();
    await holder.query('begin');
    await holder.query('select 1 from application where id = $1 for update', [ref.applicationId]);
    const waiting = rotate(ref);
    await waitersForLocks(apps.db, 1);
    apps.clock.advance(5_000);
    await holder.query('commit');
    holder.release();
    await waiting;
    expect((await keysOf(ref)).updatedAt).toEqual(apps.clock.now());
  });

  it('is right for instances whose clocks differ', async () => {
    const ref = await apps.createOwned();
    const late = apps.connect({ clock: () => new Date(apps.clock.now().getTime() - 5_000) });
    await rotate(ref);
    await rotate(ref, SOCKET, late);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_595));
  });

  it('is a setting: none, more, or fewer than were made', async () => {
    const ref = await apps.createOwned();
    const [none, five] = ['0', '5'].map((value) => apps.connect({ env: { RUNTIME_KEY_ROTATIONS_PER_HOUR: value } }));
    expect(await refusalOf(rotate(ref, SOCKET, none))).toMatchObject(limitReached(3_600, 0));
    for (let i = 0; i < 5; i += 1) {
      await rotate(ref, SOCKET, five);
      apps.clock.advance(MINUTE_MS);
    }
    expect(await refusalOf(rotate(ref, SOCKET, five))).toMatchObject(limitReached(3_300, 5));
    // Of five, all but one must be out of the hour before two a hour allow another; the fourth was made two minutes ago.
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_480));
  });
});

describe('a refused rotation', () => {
  it.each([RuntimeKeyType.UNSPECIFIED, 3, -1, 2_147_483_647])(
    'is one of no type of key, and changes nothing: %d',
    async (type) => {
      const ref = await apps.createOwned();
      const before = await everything(apps.db);
      expect(await refusalOf(rotate(ref, type))).toMatchObject({
        reason: 'runtime_key_type_invalid',
        kind: 'malformed',
        code: 'VALIDATION_ERROR',
      });
      expect(await everything(apps.db)).toEqual(before);
    },
  );

  it('for the limit changes nothing, and tells no other account that there is a limit', async () => {
    const [ref, foreign] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await rotate(ref);
    await rotate(ref);
    const before = await everything(apps.db);
    expect(await refusalOf(rotate(ref))).toMatchObject(limitReached(3_600));
    expect(await refusalOf(rotate({ ...ref, accountId: foreign.accountId }))).toEqual(NOT_FOUND);
    expect(await everything(apps.db)).toEqual(before);
  });
});
