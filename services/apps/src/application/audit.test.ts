import { randomUUID } from 'node:crypto';
import { auditReader, FOR_SOMEBODY, type ShownEntry, SOMEBODY } from '@latchkey/audit/testing/audit-reader';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whileFailing } from '../testing/failing-table.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
let entriesOf: (accountId: string) => Promise<ShownEntry[]>;
beforeAll(async () => {
  apps = await startTestApps();
  entriesOf = auditReader(apps.service.routes);
});
afterAll(() => apps.stop());

const set = (ref: OwnedRef, field: string, value: string | boolean, options = FOR_SOMEBODY) => {
  const typed = typeof value === 'string' ? { case: 'stringValue' as const, value } : { case: 'boolValue' as const, value };
  return apps.client.updateApplicationSetting({ ...ref, field, value: typed }, options);
};

const rotationsOf = (ref: OwnedRef) => apps.client.rotateRuntimeKey({ ...ref, type: 2 }, FOR_SOMEBODY);

describe('the audit log', () => {
  it('says each thing that is done to an application, by whom and with what', async () => {
    const accountId = randomUUID();
    const { applicationId } = await apps.client.createApplication({ accountId, name: ' Engine ' }, FOR_SOMEBODY);
    const ref = { accountId, applicationId };
    await set(ref, 'version', '2.0');
    await set(ref, 'applicationUserRequiresLicense', true);
    await set(ref, 'status', 'paused');
    await set(ref, 'status', 'online');
    await apps.client.replaceLicenseLevels({ ...ref, levels: ['Basic', 'Pro'] }, FOR_SOMEBODY);
    await rotationsOf(ref);
    await apps.client.deleteApplication(ref, FOR_SOMEBODY);
    const entries = await entriesOf(accountId);
    expect(entries.map(({ action, changes }) => [action, changes])).toEqual([
      ['application.created', { name: 'Engine' }],
      ['application.setting_updated', { field: 'version', value: '2.0', previous: '1.0' }],
      ['application.setting_updated', { field: 'applicationUserRequiresLicense', value: true, previous: false }],
      ['application.paused', { field: 'status', value: 'paused', previous: 'online' }],
      ['application.resumed', { field: 'status', value: 'online', previous: 'paused' }],
      ['application.license_levels_replaced', { levels: ['Basic', 'Pro'] }],
      ['application.runtime_key_rotated', { type: 'httpKey' }],
      ['application.deleted', { name: 'Engine' }],
    ]);
    for (const entry of entries) {
      expect(entry).toMatchObject({ actor: 'session', ...SOMEBODY, subject: `application ${applicationId}`, applicationId });
    }
  });

  it('says that a service did it where nobody was named', async () => {
    const { accountId } = await apps.createOwned();
    expect(await entriesOf(accountId)).toMatchObject([{ action: 'application.created', actor: 'service' }]);
  });

  it('says nothing of what is read, refused, or as it was', async () => {
    const ref = await apps.createOwned();
    const before = await entriesOf(ref.accountId);
    await apps.client.getApplicationSettings(ref, FOR_SOMEBODY);
    await apps.client.listApplications(ref, FOR_SOMEBODY);
    await set(ref, 'version', ' 1.0 ');
    await set(ref, 'status', 'online');
    const refused = [
      set(ref, 'version', ''),
      set(ref, 'nothing', 'x'),
      apps.client.replaceLicenseLevels({ ...ref, levels: [] }, FOR_SOMEBODY),
      apps.client.createApplication({ ...ref, name: 'short' }, FOR_SOMEBODY),
      apps.client.deleteApplication({ ...ref, applicationId: randomUUID() }, FOR_SOMEBODY),
      apps.client.replaceLicenseLevels({ ...ref, applicationId: randomUUID(), levels: ['a'] }, FOR_SOMEBODY),
    ];
    expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(Array(6).fill('rejected'));
    expect(await entriesOf(ref.accountId)).toEqual(before);
    expect(await entriesOf(randomUUID())).toEqual([]);
  });

  it.each([
    ['a setting', (ref: OwnedRef) => set(ref, 'version', '3.0'), 'update'],
    ['the levels', (ref: OwnedRef) => apps.client.replaceLicenseLevels({ ...ref, levels: ['a'] }, FOR_SOMEBODY), 'update'],
    ['a key', rotationsOf, 'update'],
    ['its being there', (ref: OwnedRef) => apps.client.deleteApplication(ref, FOR_SOMEBODY), 'delete'],
  ] as [string, (ref: OwnedRef) => Promise<unknown>, 'update' | 'delete'][])(
    'has no entry of a change that is not committed: %s',
    async (_what, change, operation) => {
      const ref = await apps.createOwned();
      const before = await entriesOf(ref.accountId);
      const failure = { table: 'application', operation, applicationId: ref.applicationId, when: 'commit' } as const;
      await expect(whileFailing(apps.db, failure, () => change(ref))).rejects.toThrow();
      expect(await entriesOf(ref.accountId)).toEqual(before);
      await change(ref);
      expect(await entriesOf(ref.accountId)).toHaveLength(before.length + 1);
    },
  );

  it.each([
    ['a setting', (ref: OwnedRef) => set(ref, 'version', '3.0')],
    ['the levels', (ref: OwnedRef) => apps.client.replaceLicenseLevels({ ...ref, levels: ['a'] }, FOR_SOMEBODY)],
    ['a key', rotationsOf],
    ['its being there', (ref: OwnedRef) => apps.client.deleteApplication(ref, FOR_SOMEBODY)],
  ] as [string, (ref: OwnedRef) => Promise<unknown>][])(
    'lets no change be committed that it can not take: %s',
    async (_what, change) => {
      const ref = await apps.createOwned();
      const row = async () => (await apps.db.query('select * from application where id = $1', [ref.applicationId])).rows;
      const before = await row();
      const failure = { table: 'audit_entry', operation: 'insert', applicationId: ref.applicationId } as const;
      await expect(whileFailing(apps.db, failure, () => change(ref))).rejects.toThrow();
      expect(await row()).toEqual(before);
    },
  );

  it('has one entry of each change, however many are made at once', async () => {
    const refs = await Promise.all(Array.from({ length: 4 }, () => apps.createOwned()));
    const versions = Array.from({ length: 8 }, (_, i) => `at-once-${i}`);
    await Promise.all(refs.flatMap((ref) => versions.map((version) => set(ref, 'version', version))));
    for (const ref of refs) {
      const changes = (await entriesOf(ref.accountId)).slice(1).map((entry) => entry.changes);
      expect(changes.map(({ value }) => value).toSorted()).toEqual(versions);
      // They follow one another: each has the value of the one before.
      expect(changes.map(({ previous }) => previous)).toEqual(['1.0', ...changes.slice(0, -1).map(({ value }) => value)]);
    }
  });

  it('holds no key', async () => {
    const ref = await apps.createOwned();
    await rotationsOf(ref);
    const { applications } = await apps.client.listApplications(ref);
    const { rows } = await apps.db.query('select string_agg(e::text, $1) as text from audit_entry e', [' ']);
    const { socketKey = '', httpKey = '' } = applications[0]?.runtimeKeys ?? {};
    for (const key of [socketKey, httpKey]) expect(rows[0].text).not.toContain(key.slice(-16));
  });
});
