import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Operation, whileFailing } from '../testing/failing-table.ts';
import { eventsOf, everything, rowOf } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const setText = (ref: OwnedRef, field: string, value: string) =>
  apps.client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
const pause = (ref: OwnedRef) => setText(ref, 'status', 'paused');
const resume = (ref: OwnedRef) => setText(ref, 'status', 'online');
const setVersion = (ref: OwnedRef, version: string) => setText(ref, 'version', version);
const rotateSocketKey = (ref: OwnedRef) => apps.client.rotateRuntimeKey({ ...ref, type: 1 });
const rotateHttpKey = (ref: OwnedRef) => apps.client.rotateRuntimeKey({ ...ref, type: 2 });
const remove = (ref: OwnedRef) => apps.client.deleteApplication(ref);

/** Every change that is told of, by name. */
const TOLD: Record<string, (ref: OwnedRef) => Promise<unknown>> = {
  pausing: pause,
  'a new version': (ref) => setVersion(ref, '2.0'),
  'a new socket key': rotateSocketKey,
  'a new HTTP key': rotateHttpKey,
  deletion: remove,
};

describe('the event log', () => {
  it('has every change in its order, with the next sequence where live clients hear of it', async () => {
    const ref = await apps.createOwned();
    for (const change of [pause, rotateSocketKey, resume, () => setVersion(ref, ' 2.0 '), rotateHttpKey, remove]) {
      apps.clock.advance(1_000);
      await change(ref);
    }
    const events = await eventsOf(apps.db, ref.applicationId);
    expect(events.map(({ type, sequence, data }) => [type, sequence, data])).toEqual([
      ['paused', '1', { status: 'paused' }],
      ['runtime_key_rotated', null, { type: 'socketKey' }],
      ['resumed', '2', { status: 'online' }],
      ['version_changed', '3', { version: '2.0', previous_version: '1.0' }],
      ['runtime_key_rotated', null, { type: 'httpKey' }],
      ['deleted', '4', {}],
    ]);
    const end = apps.clock.now().getTime();
    expect(events.map(({ created_at }) => end - created_at.getTime())).toEqual([5_000, 4_000, 3_000, 2_000, 1_000, 0]);
    expect(new Set(events.map(({ account_id }) => account_id))).toEqual(new Set([ref.accountId]));
  });

  it('keeps events as the protocol has them', async () => {
    const ref = await apps.createOwned();
    for (const change of Object.values(TOLD)) await change(ref);
    const messages = (await eventsOf(apps.db, ref.applicationId)).map(({ type, data }) =>
      fromJson(ApplicationEventSchema, { [type]: data as JsonValue }),
    );
    expect(messages.map(({ event }) => event)).toMatchObject([
      { case: 'paused', value: { status: 'paused' } },
      { case: 'versionChanged', value: { version: '2.0', previousVersion: '1.0' } },
      { case: 'runtimeKeyRotated', value: { type: 'socketKey' } },
      { case: 'runtimeKeyRotated', value: { type: 'httpKey' } },
      { case: 'deleted' },
    ]);
  });

  it('counts the sequence of each application by itself, and shows it with the runtime key', async () => {
    const [one, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const { applications } = await apps.client.listApplications({ accountId: one.accountId });
    const key = { case: 'httpKey', value: applications[0]?.runtimeKeys?.httpKey ?? '' } as const;
    expect((await apps.client.lookUpApplication({ key })).lastSequence).toBe(0n);
    await pause(one);
    await pause(other);
    await resume(one);
    await rotateSocketKey(one);
    expect((await apps.client.lookUpApplication({ key })).lastSequence).toBe(2n);
    expect((await eventsOf(apps.db, other.applicationId)).map(({ sequence }) => sequence)).toEqual(['1']);
  });

  it('has no gap and no duplicate however changes, refusals and failures mix', async () => {
    const ref = await apps.createOwned();
    const instances = [apps, apps.connect(), apps.connect()];
    const calls = Array.from({ length: 60 }, (_, i) => {
      const { client } = instances[i % instances.length] as (typeof instances)[number];
      const [field, value] = [
        ['status', i % 2 ? 'paused' : 'online'],
        ['version', `3.${i}`],
        ['version', '4.0'],
        ['version', ''],
        ['nothing', 'x'],
      ][i % 5] as [string, string];
      return client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
    });
    const rotations = instances.map(({ client }) => client.rotateRuntimeKey({ ...ref, type: 1 }));
    await Promise.allSettled([...calls, ...rotations]);
    const sequences = (await eventsOf(apps.db, ref.applicationId)).flatMap(({ sequence }) => sequence ?? []).map(Number);
    expect(sequences.toSorted((a, b) => a - b)).toEqual(sequences.map((_, i) => i + 1));
    expect((await rowOf(apps.db, ref.applicationId))?.last_sequence).toBe(String(sequences.length));
  });

  it('has nothing of what did not change or is no live client’s business', async () => {
    const ref = await apps.createOwned();
    await resume(ref);
    await setVersion(ref, ' 1.0');
    const fields = ['applicationLicenseRequiresClientId', 'applicationUserRequiresClientId', 'applicationUserRequiresLicense'];
    for (const field of fields) {
      await apps.client.updateApplicationSetting({ ...ref, field, value: { case: 'boolValue', value: true } });
    }
    await apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] });
    await refusalOf(setText(ref, 'status', 'deleted'));
    await refusalOf(setVersion(ref, ''));
    expect(await eventsOf(apps.db, ref.applicationId)).toEqual([]);
  });

  it('never has a key', async () => {
    const ref = await apps.createOwned();
    const keys = async () => {
      const { applications } = await apps.client.listApplications({ accountId: ref.accountId });
      return [applications[0]?.runtimeKeys?.socketKey ?? '', applications[0]?.runtimeKeys?.httpKey ?? ''];
    };
    const all = await keys();
    for (const change of [rotateSocketKey, rotateHttpKey]) await change(ref);
    all.push(...(await keys()));
    const log = JSON.stringify(await eventsOf(apps.db, ref.applicationId));
    for (const key of all) expect(log).not.toContain(key.slice(8));
  });

  it('is kept when the application is gone', async () => {
    const ref = await apps.createOwned();
    await pause(ref);
    await remove(ref);
    expect(await rowOf(apps.db, ref.applicationId)).toBeUndefined();
    expect(await eventsOf(apps.db, ref.applicationId)).toHaveLength(2);
  });
});

describe('an event and its change', () => {
  const failures: ReadonlyArray<['statement' | 'commit', 'application' | 'application_event', Operation]> = [
    ['statement', 'application_event', 'insert'],
    ['commit', 'application_event', 'insert'],
    ['statement', 'application', 'update'],
    ['commit', 'application', 'update'],
    ['statement', 'application', 'delete'],
    ['commit', 'application', 'delete'],
  ];
  const cases = failures.flatMap(([when, table, operation]) =>
    Object.keys(TOLD)
      .filter((name) => table === 'application_event' || (name === 'deletion') === (operation === 'delete'))
      .map((name) => [name, when, operation, table] as const),
  );

  it.each(cases)('are both absent when %s fails at the %s: %s of %s', async (name, when, operation, table) => {
    const ref = await apps.createOwned();
    await setVersion(ref, '1.5');
    const before = await everything(apps.db);
    const change = TOLD[name] as (ref: OwnedRef) => Promise<unknown>;
    const failure = { table, operation, applicationId: ref.applicationId, when };
    const refusal = await whileFailing(apps.db, failure, () => refusalOf(change(ref)));
    expect(refusal).toMatchObject({ connectCode: 'Internal', message: 'internal error', detailCount: 0 });
    expect(await everything(apps.db)).toEqual(before);
    await change(ref);
    const sequences = (await eventsOf(apps.db, ref.applicationId)).flatMap(({ sequence }) => sequence ?? []);
    expect(sequences).toEqual(sequences.map((_, i) => String(i + 1)));
  });
});
