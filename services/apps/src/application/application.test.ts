import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { ApplicationStatus, RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whileFailing } from '../testing/failing-table.ts';
import { eventsOf, everything, waitersForLocks } from '../testing/rows.ts';
import { startTestApps, type TestApps } from '../testing/test-apps.ts';
import { ASTRAL, SPACES, UNSTORABLE } from '../testing/texts.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const NAME_INVALID = { reason: 'application_name_invalid', kind: 'malformed', code: 'VALIDATION_ERROR', metadata: {} };
const ACCOUNT_INVALID = { reason: 'account_id_invalid', kind: 'malformed', code: 'VALIDATION_ERROR', metadata: {} };

async function create(accountId: string, name = 'Application') {
  return (await apps.client.createApplication({ accountId, name })).applicationId;
}

async function listed(accountId: string) {
  return (await apps.client.listApplications({ accountId })).applications;
}

describe('a new application', () => {
  it('is online, version 1.0, requires nothing and has no levels', async () => {
    const ref = await apps.createOwned();
    const { settings } = await apps.client.getApplicationSettings(ref);
    expect(settings).toMatchObject({
      licenseRequiresClientId: false,
      userRequiresClientId: false,
      userRequiresLicense: false,
      version: '1.0',
      status: ApplicationStatus.ONLINE,
    });
    expect((await apps.client.listLicenseLevels(ref)).levels).toEqual([]);
  });

  it('has both runtime keys, unlike any other, as of its creation', async () => {
    const accountId = randomUUID();
    await Promise.all([create(accountId), create(accountId)]);
    const keys = (await listed(accountId)).flatMap(({ runtimeKeys }) => [runtimeKeys?.socketKey, runtimeKeys?.httpKey]);
    expect(keys).toEqual([
      expect.stringMatching(/^lk_sock_[0-9A-Za-z]{32}$/),
      expect.stringMatching(/^lk_http_[0-9A-Za-z]{32}$/),
      expect.stringMatching(/^lk_sock_[0-9A-Za-z]{32}$/),
      expect.stringMatching(/^lk_http_[0-9A-Za-z]{32}$/),
    ]);
    expect(new Set(keys.map((key) => key?.slice(8))).size).toBe(4);
    const [first] = await listed(accountId);
    expect(first?.runtimeKeys?.updatedAt && timestampDate(first.runtimeKeys.updatedAt)).toEqual(apps.clock.now());
  });

  it('has a UUIDv7 as id and writes no event', async () => {
    const { applicationId } = await apps.createOwned();
    expect(applicationId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await eventsOf(apps.db, applicationId)).toEqual([]);
  });

  it('may have the name of another of the account', async () => {
    const accountId = randomUUID();
    await Promise.all(Array.from({ length: 5 }, () => create(accountId, 'Same name')));
    expect((await listed(accountId)).map(({ name }) => name)).toEqual(Array(5).fill('Same name'));
  });
});

describe('the name of an application', () => {
  it.each([
    ['6 characters', 'abcdef'],
    ['32 characters', 'x'.repeat(32)],
    ['6 astral characters', ASTRAL.repeat(6)],
    ['32 astral characters', ASTRAL.repeat(32)],
    ['6 code points of one visible character', 'x\u0301\u0301\u0301\u0301\u0301'],
    ['spaces inside', 'a    b'],
    ['quotes and SQL', `'"; drop table--`],
    ['placeholders', '$1 %s ? :name'],
  ])('may have %s and is kept as given', async (_, name) => {
    const accountId = randomUUID();
    await create(accountId, name);
    expect((await listed(accountId)).map((application) => application.name)).toEqual([name]);
  });

  it('is trimmed of every kind of white space before it is measured', async () => {
    const accountId = randomUUID();
    await create(accountId, `${SPACES}${ASTRAL.repeat(32)}${SPACES}`);
    expect((await listed(accountId))[0]?.name).toBe(ASTRAL.repeat(32));
    expect(await refusalOf(create(accountId, `${SPACES}abcde${SPACES}`))).toMatchObject(NAME_INVALID);
  });

  it('is kept in NFC, without invisible characters', async () => {
    const accountId = randomUUID();
    await create(accountId, ' \u202eCafe\u0301\u200b\0 \u00adBar\n\ufeff');
    expect((await listed(accountId))[0]?.name).toBe('Caf\u00e9 Bar');
  });

  it.each([
    ['nothing', ''],
    ['six invisible characters', '\u200b'.repeat(6)],
    ['5 characters and invisible ones', 'ab\u200bc\u2060d\u202ee'],
    ['5 characters in NFC', 'e\u0301'.repeat(5)],
    ['only white space', SPACES.repeat(2)],
    ['5 characters', 'abcde'],
    ['33 characters', 'x'.repeat(33)],
    ['5 astral characters, which are 10 units', ASTRAL.repeat(5)],
    ['33 astral characters', ASTRAL.repeat(33)],
    ['33 code points that begin with astral ones', ASTRAL.repeat(16) + 'x'.repeat(17)],
    ['a million characters', 'x'.repeat(1_000_000)],
    ...UNSTORABLE.filter((text) => !text.isWellFormed()).map((text): [string, string] => [
      `what can't be stored: ${JSON.stringify(text)}`,
      text,
    ]),
  ])('can’t be %s, and nothing is made', async (_, name) => {
    const accountId = randomUUID();
    const before = await everything(apps.db);
    expect(await refusalOf(create(accountId, name))).toMatchObject(NAME_INVALID);
    expect(await everything(apps.db)).toEqual(before);
  });
});

describe('an account id that is no UUID', () => {
  it.each(['', 'account', '018f2b6c7d1e7a3b9c4d5e6f708192a3', `${randomUUID()}\0`, `\ud800${randomUUID().slice(1)}`])(
    'is refused by the calls that name nothing else: %j',
    async (accountId) => {
      const before = await everything(apps.db);
      const { client } = apps;
      expect(await refusalOf(client.createApplication({ accountId, name: 'Application' }))).toMatchObject(ACCOUNT_INVALID);
      expect(await refusalOf(client.listApplications({ accountId }))).toMatchObject(ACCOUNT_INVALID);
      expect(await refusalOf(client.findOwnedApplications({ accountId, applicationIds: [] }))).toMatchObject(ACCOUNT_INVALID);
      expect(await everything(apps.db)).toEqual(before);
    },
  );

  it('is the same account in capitals', async () => {
    const { accountId, applicationId } = await apps.createOwned();
    expect((await listed(accountId.toUpperCase())).map(({ id }) => id)).toEqual([applicationId]);
    await create(accountId.toUpperCase());
    expect(await listed(accountId)).toHaveLength(2);
  });
});

describe('the ids that an account owns', () => {
  it('are those of its own applications, each once, and no other text', async () => {
    const [mine, foreign, deleted] = await Promise.all([apps.createOwned(), apps.createOwned(), apps.createOwned()]);
    await apps.client.deleteApplication(deleted);
    const second = await create(mine.accountId);
    const texts = [
      mine.applicationId,
      foreign.applicationId,
      second,
      deleted.applicationId,
      randomUUID(),
      '',
      'x',
      '\0',
      '\ud800',
    ];
    const applicationIds = [...texts, ...texts, mine.applicationId.toUpperCase()];
    const answer = await apps.client.findOwnedApplications({ accountId: mine.accountId, applicationIds });
    expect(answer.applicationIds.toSorted()).toEqual([mine.applicationId, second].toSorted());
    const none = await apps.client.findOwnedApplications({ accountId: randomUUID(), applicationIds });
    expect(none.applicationIds).toEqual([]);
  });

  it('are none of none, and some of more than a statement has parameters', async () => {
    const { accountId, applicationId } = await apps.createOwned();
    expect((await apps.client.findOwnedApplications({ accountId, applicationIds: [] })).applicationIds).toEqual([]);
    const applicationIds = [...Array.from({ length: 70_000 }, () => randomUUID()), applicationId];
    const found = await apps.client.findOwnedApplications({ accountId, applicationIds });
    expect(found.applicationIds).toEqual([applicationId]);
    const { applications } = await apps.client.listApplications({ accountId, filter: { applicationIds } });
    expect(applications.map(({ id }) => id)).toEqual([applicationId]);
  });
});

describe('a deleted application', () => {
  it('is gone at once for every call and by both of its keys, and no other is', async () => {
    const ref = await apps.createOwned();
    const kept = await create(ref.accountId);
    const [application] = await listed(ref.accountId);
    await apps.client.deleteApplication(ref);
    expect((await listed(ref.accountId)).map(({ id }) => id)).toEqual([kept]);
    const filter = { applicationIds: [ref.applicationId, kept] };
    const { applications } = await apps.client.listApplications({ accountId: ref.accountId, filter });
    expect(applications.map(({ id }) => id)).toEqual([kept]);
    const { socketKey = '', httpKey = '' } = application?.runtimeKeys ?? {};
    const invalid = { reason: 'runtime_key_invalid' };
    expect(await refusalOf(apps.client.lookUpApplication({ key: { case: 'socketKey', value: socketKey } }))).toMatchObject(
      invalid,
    );
    expect(await refusalOf(apps.client.lookUpApplication({ key: { case: 'httpKey', value: httpKey } }))).toMatchObject(invalid);
  });

  it('is deleted once, by one of many calls at once', async () => {
    const ref = await apps.createOwned();
    const calls = await Promise.allSettled(Array.from({ length: 8 }, () => apps.client.deleteApplication(ref)));
    expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = calls.filter((call) => call.status === 'rejected');
    for (const { reason } of refused) expect(await refusalOf(Promise.reject(reason))).toEqual(NOT_FOUND);
    expect((await eventsOf(apps.db, ref.applicationId)).map(({ type }) => type)).toEqual(['deleted']);
  });

  it('takes no change that was waiting for its row', async () => {
    const ref = await apps.createOwned();
    const holder = await apps.db.connect();
    await holder.query('begin');
    await holder.query('select 1 from application where id = $1 for update', [ref.applicationId]);
    const changes = [
      apps.client.updateApplicationSetting({ ...ref, field: 'version', value: { case: 'stringValue', value: '2' } }),
      apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
      apps.client.rotateRuntimeKey({ ...ref, type: RuntimeKeyType.HTTP }),
    ].map(refusalOf);
    await waitersForLocks(apps.db, changes.length);
    await holder.query('delete from application where id = $1', [ref.applicationId]);
    await holder.query('commit');
    holder.release();
    expect(await Promise.all(changes)).toEqual([NOT_FOUND, NOT_FOUND, NOT_FOUND]);
    expect(await eventsOf(apps.db, ref.applicationId)).toEqual([]);
  });

  it('is whole again when its removal fails, and tells nobody', async () => {
    const ref = await apps.createOwned();
    const before = await everything(apps.db);
    const failure = { table: 'application', operation: 'delete', applicationId: ref.applicationId } as const;
    const refusal = await whileFailing(apps.db, failure, () => refusalOf(apps.client.deleteApplication(ref)));
    expect(refusal).toMatchObject({ connectCode: 'Internal', message: 'internal error', detailCount: 0 });
    expect(await everything(apps.db)).toEqual(before);
  });
});
