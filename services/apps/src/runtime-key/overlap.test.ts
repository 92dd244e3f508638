import { timestampDate } from '@bufbuild/protobuf/wkt';
import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { eventsOf, everything } from '../testing/rows.ts';
import { type OwnedRef, range, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const { SOCKET, HTTP } = RuntimeKeyType;
const DAY_S = 86_400;

const rotate = (ref: OwnedRef, request: { type?: RuntimeKeyType; overlapSeconds?: number; endPrevious?: boolean } = {}) =>
  apps.client.rotateRuntimeKey({ ...ref, type: HTTP, ...request });
const lookUp = (httpKey: string) => apps.client.lookUpApplication({ key: { case: 'httpKey', value: httpKey } });
const isRejected = async (httpKey: string) => (await refusalOf(lookUp(httpKey))).reason === 'runtime_key_invalid';

/** An application whose HTTP key was rotated, with the old and the new key. */
async function rotated(overlapSeconds = DAY_S) {
  const ref = await apps.createOwned();
  const { httpKey: old } = await apps.keysOf(ref);
  await rotate(ref, { overlapSeconds });
  const keys = await apps.keysOf(ref);
  return { ref, old, keys };
}

describe('an overlap', () => {
  it('accepts both keys until its end, and only the new one from then on, at every instance', async () => {
    const { ref, old, keys } = await rotated();
    expect(keys.previousHttpKey?.expiresAt && timestampDate(keys.previousHttpKey.expiresAt)).toEqual(
      new Date(apps.clock.now().getTime() + DAY_S * 1_000),
    );
    expect(keys.previousHttpKey?.lastUsedAt).toBeUndefined();
    expect(keys.previousSocketKey).toBeUndefined();
    expect(await lookUp(old)).toMatchObject(ref);
    apps.clock.advance(DAY_S * 1_000 - 1);
    const other = apps.connect().client;
    expect(await other.lookUpApplication({ key: { case: 'httpKey', value: old } })).toMatchObject(ref);
    apps.clock.advance(1);
    expect(await isRejected(old)).toBe(true);
    expect(await lookUp(keys.httpKey)).toMatchObject(ref);
    expect((await apps.keysOf(ref)).previousHttpKey).toBeUndefined();
  });

  it('shows the last use of the old key, and stores it once a minute at most', async () => {
    const { ref, old } = await rotated();
    const usedAt = async () => {
      const { previousHttpKey } = await apps.keysOf(ref);
      return previousHttpKey?.lastUsedAt && timestampDate(previousHttpKey.lastUsedAt);
    };
    const first = apps.clock.now();
    await Promise.all(range(1, 20).map(() => lookUp(old)));
    expect(await usedAt()).toEqual(first);
    apps.clock.advance(59_999);
    await lookUp(old);
    expect(await usedAt()).toEqual(first);
    apps.clock.advance(1);
    await lookUp(old);
    expect(await usedAt()).toEqual(apps.clock.now());
  });

  it('blocks another rotation of its type, unless that ends it', async () => {
    const { ref, old, keys } = await rotated();
    const before = await everything(apps.db);
    expect(await refusalOf(rotate(ref))).toMatchObject({ reason: 'overlap_active', kind: 'conflict', code: 'overlap_active' });
    expect(await everything(apps.db)).toEqual(before);
    await rotate(ref, { overlapSeconds: 60, endPrevious: true });
    expect(await isRejected(old)).toBe(true);
    expect(await lookUp(keys.httpKey)).toMatchObject(ref);
  });

  it('lets the other type rotate, and ends without a new one if the rotation has none', async () => {
    const { ref, old, keys } = await rotated();
    await rotate(ref, { type: SOCKET });
    apps.clock.advance(3_600_000);
    await rotate(ref, { endPrevious: true });
    expect([await isRejected(old), await isRejected(keys.httpKey)]).toEqual([true, true]);
  });

  it('ends when asked, with an event, and asking again changes nothing', async () => {
    const { ref, old, keys } = await rotated();
    await apps.client.endKeyOverlap({ ...ref, type: SOCKET });
    expect(await lookUp(old)).toMatchObject(ref);
    await apps.client.endKeyOverlap({ ...ref, type: HTTP });
    expect(await isRejected(old)).toBe(true);
    expect(await lookUp(keys.httpKey)).toMatchObject(ref);
    expect(await eventsOf(apps.db, ref)).toMatchObject([{ data: { type: 'httpKey' } }, { data: { type: 'httpKey' } }]);
    const before = await everything(apps.db);
    await apps.client.endKeyOverlap({ ...ref, type: HTTP });
    expect(await everything(apps.db)).toEqual(before);
  });

  it('is shown with the live state, for socket keys only', async () => {
    const { ref } = await rotated();
    const stateOf = async () => (await apps.client.batchGetLiveStates({ applicationIds: [ref.applicationId] })).states[0];
    const first = await stateOf();
    expect(first?.previousSocketKeyFingerprint).toBe('');
    await rotate(ref, { type: SOCKET, overlapSeconds: 60 });
    expect(await stateOf()).toMatchObject({ previousSocketKeyFingerprint: first?.socketKeyFingerprint });
    apps.clock.advance(60_000);
    expect((await stateOf())?.previousSocketKeyExpiresAt).toBeUndefined();
  });

  it.each([-1, 604_801, 2_147_483_647])('of %i seconds is rejected', async (overlapSeconds) => {
    const ref = await apps.createOwned();
    const before = await everything(apps.db);
    expect(await refusalOf(rotate(ref, { overlapSeconds }))).toMatchObject({
      reason: 'key_overlap_invalid',
      code: 'VALIDATION_ERROR',
    });
    expect(await everything(apps.db)).toEqual(before);
  });
});
