import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { AS_CALLER, auditReader, CALLER } from '@latchkey/audit/testing/audit-reader';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { ApplicationStatus, RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { eventsOf, everything, holdRow } from '../testing/rows.ts';
import { type AppsInstance, ASTRAL, type OwnedRef, range, SPACES, UNSTORABLE, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const ACCOUNT_INVALID = { reason: 'account_id_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };

async function create(accountId: string, name = 'Application', { client }: AppsInstance = apps) {
  return (await client.createApplication({ accountId, name })).applicationId;
}
const listed = async (accountId: string) => (await apps.client.listApplications({ accountId })).applications;

describe('a new application', () => {
  it('has the defaults, a UUIDv7, two new runtime keys, and no event', async () => {
    const ref = await apps.createOwned();
    const other = { ...ref, applicationId: await create(ref.accountId) };
    expect(ref.applicationId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect((await apps.client.getApplicationSettings(ref)).settings).toMatchObject({
      licenseRequiresClientId: false,
      userRequiresClientId: false,
      userRequiresLicense: false,
      version: '1.0',
      status: ApplicationStatus.ONLINE,
    });
    expect((await apps.client.listLicenseLevels(ref)).levels).toEqual([]);
    expect(await eventsOf(apps.db, ref)).toEqual([]);
    const keys = [await apps.keysOf(ref), await apps.keysOf(other)];
    for (const { socketKey, httpKey, updatedAt } of keys) {
      expect(socketKey).toMatch(/^lk_sock_[0-9A-Za-z]{32}$/);
      expect(httpKey).toMatch(/^lk_http_[0-9A-Za-z]{32}$/);
      expect(updatedAt && timestampDate(updatedAt)).toEqual(apps.clock.now());
    }
    expect(new Set(keys.flatMap(({ socketKey, httpKey }) => [socketKey.slice(8), httpKey.slice(8)])).size).toBe(4);
  });

  it.each([
    ['6 characters', 'abcdef', 'abcdef'],
    ['32 astral characters in white space', `${SPACES}${ASTRAL.repeat(32)}${SPACES}`, ASTRAL.repeat(32)],
    ['quotes, SQL and placeholders', `'"; drop table-- $1 %s`, `'"; drop table-- $1 %s`],
    ['invisible characters, in NFC', ' \u202eCafe\u0301\u200b\0 \u00adBar\n\ufeff', 'Caf\u00e9 Bar'],
  ])('may have a name of %s, which another may have too', async (_, name, stored) => {
    const accountId = randomUUID();
    await Promise.all([create(accountId, name), create(accountId, name)]);
    expect((await listed(accountId)).map((application) => application.name)).toEqual([stored, stored]);
  });

  it.each([
    ['nothing', ''],
    ['invisible characters', '\u200b'.repeat(6)],
    ['5 characters and white space', `${SPACES}abcde${SPACES}`],
    ['5 characters in NFC', 'e\u0301'.repeat(5)],
    ['33 astral characters', ASTRAL.repeat(33)],
    ['a million characters', 'x'.repeat(1_000_000)],
    ...UNSTORABLE.slice(1).map((text): [string, string] => [JSON.stringify(text), text]),
  ])('cannot have a name of %s', async (_, name) => {
    const before = await everything(apps.db);
    const invalid = { reason: 'application_name_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
    expect(await refusalOf(create(randomUUID(), name))).toMatchObject(invalid);
    expect(await everything(apps.db)).toEqual(before);
  });
});

it.each(['', '018f2b6c7d1e7a3b9c4d5e6f708192a3', `${randomUUID()}\0`, `\ud800${randomUUID().slice(1)}`])(
  'the account id %j is rejected',
  async (accountId) => {
    const { client } = apps;
    expect(await refusalOf(create(accountId))).toMatchObject(ACCOUNT_INVALID);
    expect(await refusalOf(client.listApplications({ accountId }))).toMatchObject(ACCOUNT_INVALID);
    expect(await refusalOf(client.findOwnedApplications({ accountId, applicationIds: [] }))).toMatchObject(ACCOUNT_INVALID);
    expect(await refusalOf(client.getApplicationUsage({ accountId }))).toMatchObject(ACCOUNT_INVALID);
  },
);

describe('the limit of applications', () => {
  const limited = (APPLICATIONS_LIMIT: string) => apps.connect({ env: { APPLICATIONS_LIMIT } });

  it('holds for concurrent creations through several instances, and a deletion makes room', async () => {
    const accountId = randomUUID();
    const instances = [limited('3'), limited('3')];
    const calls = range(1, 20).map((i) => create(accountId, 'Application', instances[i % 2]));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(await instances[0]?.client.getApplicationUsage({ accountId })).toMatchObject({
      applicationCount: 3n,
      applicationCountMax: 3n,
    });
    const exceeded = { reason: 'applications_limit_exceeded', kind: 'too_large', code: 'limit_exceeded' };
    expect(await refusalOf(create(accountId, 'Application', instances[0]))).toMatchObject(exceeded);
    await apps.client.deleteApplication({ accountId, applicationId: (await listed(accountId))[0]?.id ?? '' });
    await create(accountId, 'Application', instances[0]);
  });

  it('is 200 unless it is set, and may be none', async () => {
    const usage = await apps.client.getApplicationUsage({ accountId: randomUUID() });
    expect(usage).toMatchObject({ applicationCount: 0n, applicationCountMax: 200n });
    await expect(create(randomUUID(), 'Application', limited('0'))).rejects.toThrow();
  });

  it('leaves connections to other accounts while creations of one wait', async () => {
    const [accountId, other] = [randomUUID(), randomUUID()];
    const instance = apps.connect({ env: { DATABASE_POOL_MAX: '2' } });
    const lock = `select pg_advisory_xact_lock(hashtextextended('applications/' || $1, 0))`;
    const release = await holdLocks(apps.db, lock, [accountId]);
    const creations = range(1, 3).map(() => create(accountId, 'Application', instance));
    await waitersForLocks(apps.db, 1);
    expect(await instance.client.listApplications({ accountId: other })).toMatchObject({ applications: [] });
    await release();
    await Promise.all(creations);
  });
});

it('concurrent changes of one application leave connections to other accounts', async () => {
  const ref = await apps.createOwned();
  const instance = apps.connect({ env: { DATABASE_POOL_MAX: '2' } });
  const release = await holdRow(apps.db, ref);
  const changes = range(1, 3).map(() => instance.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }));
  await waitersForLocks(apps.db, 1);
  expect(await instance.client.listApplications({ accountId: randomUUID() })).toMatchObject({ applications: [] });
  await release();
  await Promise.all(changes);
});

it('the owned ids are those of the account, each once, of any number of texts', async () => {
  const [mine, foreign, deleted] = await Promise.all([apps.createOwned(), apps.createOwned(), apps.createOwned()]);
  await apps.client.deleteApplication(deleted);
  const { accountId, applicationId } = mine;
  const texts = [applicationId, applicationId.toUpperCase(), foreign.applicationId, deleted.applicationId, '', '\0', '\ud800'];
  const applicationIds = [...texts, ...Array.from({ length: 70_000 }, () => randomUUID())];
  const found = await apps.client.findOwnedApplications({ accountId: accountId.toUpperCase(), applicationIds });
  expect(found.applicationIds).toEqual([applicationId]);
  const { applications } = await apps.client.listApplications({ accountId, filter: { applicationIds } });
  expect(applications.map(({ id }) => id)).toEqual([applicationId]);
  expect((await apps.client.findOwnedApplications({ accountId, applicationIds: [] })).applicationIds).toEqual([]);
});

describe('a deletion', () => {
  it('removes the application for every call and both keys, and no other', async () => {
    const ref = await apps.createOwned();
    const other = await create(ref.accountId);
    const { socketKey, httpKey } = await apps.keysOf(ref);
    await apps.client.deleteApplication(ref);
    expect((await listed(ref.accountId)).map(({ id }) => id)).toEqual([other]);
    for (const key of [
      { case: 'socketKey', value: socketKey },
      { case: 'httpKey', value: httpKey },
    ] as const)
      expect(await refusalOf(apps.client.lookUpApplication({ key }))).toMatchObject({ reason: 'runtime_key_invalid' });
  });

  it('succeeds once of many concurrent ones, with one event', async () => {
    const ref = await apps.createOwned();
    const calls = await Promise.allSettled(range(1, 8).map(() => apps.client.deleteApplication(ref)));
    const rejected = calls.filter((call) => call.status === 'rejected');
    expect(rejected).toHaveLength(7);
    for (const { reason } of rejected) expect(await refusalOf(Promise.reject(reason))).toEqual(NOT_FOUND);
    expect(await eventsOf(apps.db, ref)).toMatchObject([{ type: 'deleted' }]);
  });

  it('comes before the changes that wait for its row, which fail', async () => {
    const ref = await apps.createOwned();
    const release = await holdRow(apps.db, ref);
    const changes = [
      apps.set(ref, 'version', '2'),
      apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
      apps.client.rotateRuntimeKey({ ...ref, type: RuntimeKeyType.HTTP }),
    ].map(refusalOf);
    await waitersForLocks(apps.db, 1);
    await release(`delete from application where id = '${ref.applicationId}'`);
    expect(await Promise.all(changes)).toEqual([NOT_FOUND, NOT_FOUND, NOT_FOUND]);
    expect(await eventsOf(apps.db, ref)).toEqual([]);
  });
});

describe('the audit log', () => {
  const entriesOf = (accountId: string) => auditReader(apps.service.routes)(accountId);
  const rotate = (ref: OwnedRef) => apps.client.rotateRuntimeKey({ ...ref, type: 2 }, AS_CALLER);

  it('has every change of an application with its actor, names and values', async () => {
    const accountId = randomUUID();
    const { applicationId } = await apps.client.createApplication({ accountId, name: ' Engine ' }, AS_CALLER);
    const ref = { accountId, applicationId };
    await apps.set(ref, 'version', '2.0', AS_CALLER);
    await apps.set(ref, 'user_requires_license', true, AS_CALLER);
    await apps.set(ref, 'status', 'paused', AS_CALLER);
    await apps.set(ref, 'status', 'online', AS_CALLER);
    await apps.client.replaceLicenseLevels({ ...ref, levels: ['Basic', 'Pro'] }, AS_CALLER);
    await rotate(ref);
    await apps.client.deleteApplication(ref, AS_CALLER);
    const entries = await entriesOf(accountId);
    expect(entries.map(({ action, changes }) => [action, changes])).toEqual([
      ['application.created', { name: 'Engine' }],
      ['application.setting_updated', { field: 'version', value: '2.0', previous: '1.0' }],
      ['application.setting_updated', { field: 'user_requires_license', value: true, previous: false }],
      ['application.paused', { field: 'status', value: 'paused', previous: 'online' }],
      ['application.resumed', { field: 'status', value: 'online', previous: 'paused' }],
      ['application.license_levels_replaced', { levels: ['Basic', 'Pro'] }],
      ['application.runtime_key_rotated', { type: 'httpKey' }],
      ['application.deleted', { name: 'Engine' }],
    ]);
    for (const entry of entries)
      expect(entry).toMatchObject({ actor: 'session', ...CALLER, subject: `application ${applicationId}`, applicationId });
  });

  it('has nothing of a read, a rejected change, or one to the current value', async () => {
    const ref = await apps.createOwned();
    const before = await entriesOf(ref.accountId);
    expect(before).toMatchObject([{ action: 'application.created', actor: 'service' }]);
    await apps.client.getApplicationSettings(ref, AS_CALLER);
    await apps.set(ref, 'version', ' 1.0 ', AS_CALLER);
    await refusalOf(apps.set(ref, 'version', '', AS_CALLER));
    await refusalOf(apps.client.replaceLicenseLevels({ ...ref, levels: [] }, AS_CALLER));
    await refusalOf(apps.client.createApplication({ ...ref, name: 'short' }, AS_CALLER));
    expect(await entriesOf(ref.accountId)).toEqual(before);
  });

  it.each<[string, 'update' | 'delete', (ref: OwnedRef) => Promise<unknown>]>([
    ['the status', 'update', (ref) => apps.set(ref, 'status', 'paused')],
    ['the version', 'update', (ref) => apps.set(ref, 'version', '3.0')],
    ['the levels', 'update', (ref) => apps.client.replaceLicenseLevels({ ...ref, levels: ['a'] })],
    ['a key', 'update', rotate],
    ['the application', 'delete', (ref) => apps.client.deleteApplication(ref)],
  ])('a change of %s and its event are committed together or not at all', async (_, operation, change) => {
    const ref = await apps.createOwned();
    const { applicationId } = ref;
    const before = [await everything(apps.db), await entriesOf(ref.accountId)];
    for (const failure of [
      { table: 'application', operation, applicationId, when: 'commit' },
      { table: 'audit_entry', operation: 'insert', applicationId },
    ] as const) {
      expect(await whileFailing(apps.db, failure, () => refusalOf(change(ref)))).toMatchObject({ connectCode: 'Internal' });
      expect([await everything(apps.db), await entriesOf(ref.accountId)]).toEqual(before);
    }
  });
});
