import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { explain, type PlanCacheMode, type Statement, statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeAll, describe, expect, it } from 'vitest';
import { lockUndelivered } from '../relay/relay.store.ts';
import { deleteExpiredEvents } from '../retention/retention.store.ts';
import { insertDeletions } from '../testing/rows.ts';
import { type OwnedRef, useTestApps } from '../testing/test-apps.ts';
import { createUsageSweep } from '../usage/usage.ts';

const ACCOUNTS = 200;
const APPLICATIONS = 10_000;

const apps = useTestApps();
/** An application of an account that has others. */
let ref: OwnedRef;
const statements = new Map<string, Statement[]>();
let keys: { readonly socketKey: string; readonly httpKey: string };
beforeAll(async () => {
  ref = await apps.createOwned();
  // Copies have unknown keys; what they are sealed with does not matter to a plan.
  await apps.db.query(
    `insert into application (id, account_id, name, socket_key_hash, socket_key_sealed, http_key_hash, http_key_sealed,
        runtime_keys_updated_at, created_at)
      select gen_random_uuid(), case when i % $1 = 0 then $2::uuid else md5((i % $1)::text)::uuid end, 'Application ' || i,
        sha256(('s' || i)::bytea), original.socket_key_sealed, sha256(('h' || i)::bytea), original.http_key_sealed,
        now(), now() + i * interval '1 second'
      from generate_series(1, $3::int) i, application original`,
    [ACCOUNTS, ref.accountId, APPLICATIONS],
  );
  await apps.db.query(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at, delivered_at)
      select gen_random_uuid(), id, account_id, s, case when s = 103 and account_id = $1 then 'deleted' else 'paused' end, '{}',
        created_at, now()
      from application, generate_series(101, 103) s`,
    [ref.accountId],
  );
  await apps.db.query(
    `insert into daily_usage (application_id, day, events, downloads, uploads, clients_max)
      select id, current_date - i, 1, 1, 1, 1 from application, generate_series(1, 3) i`,
  );
  await apps.db.query(`insert into application_count select gen_random_uuid(), 1 from generate_series(1, ${APPLICATIONS})`);
  await insertDeletions(apps.db, 10);
  const { applications } = await apps.client.listApplications({
    accountId: ref.accountId,
    filter: { applicationIds: [ref.applicationId] },
  });
  const { socketKey = '', httpKey = '' } = applications[0]?.runtimeKeys ?? {};
  keys = { socketKey, httpKey };
  await apps.db.query('vacuum analyze application, application_count, application_event, daily_usage');
  for (const [name, call] of Object.entries(CALLS)) {
    const sent = await statementsOf(call);
    statements.set(
      name,
      sent.filter(({ text }) => DATA_STATEMENT.test(text)),
    );
  }
});

/** The nodes of a plan; the table of the epoch has one row. */
const planOf = async (statement: Statement, mode: PlanCacheMode) =>
  (await explain(apps.db, statement, mode)).filter((node) => node['Relation Name'] !== 'event_log');

/** Statements that go to a table, as locks of the application's own do not. */
const DATA_STATEMENT = /^\s*(select|update|delete|with)\b.*\b(application|daily_usage)/is;

const token = () => Buffer.from(`${Date.now() + 60_000} ${randomUUID()}`).toString('base64url');
const page = (request: object) => apps.client.listApplications({ accountId: randomUUID(), pageSize: 10, ...request });

/** Every kind of call that reads or changes rows. */
const CALLS: Record<string, () => Promise<unknown>> = {
  'the first page of a list': () => page({}),
  'a further page of a list': () => page({ pageToken: token() }),
  'a filtered list': () => page({ filter: { applicationIds: [ref.applicationId, randomUUID()] } }),
  'a further page of a filtered list': () =>
    page({ pageToken: token(), filter: { applicationIds: [ref.applicationId, randomUUID()] } }),
  'how many there are': () => apps.client.getApplicationUsage({ accountId: randomUUID() }),
  'which ids are owned': () =>
    apps.client.findOwnedApplications({ accountId: ref.accountId, applicationIds: [ref.applicationId, randomUUID()] }),
  'a look-up by socket key': () => apps.client.lookUpApplication({ key: { case: 'socketKey', value: keys.socketKey } }),
  'a look-up by HTTP key': () => apps.client.lookUpApplication({ key: { case: 'httpKey', value: keys.httpKey } }),
  settings: () => apps.client.getApplicationSettings(ref),
  'a change of version': () => apps.set(ref, 'version', '2.0'),
  'a list of levels': () => apps.client.listLicenseLevels(ref),
  'a replacement of levels': () => apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
  'a rotation': () => apps.client.rotateRuntimeKey({ ...ref, type: 1 }),
  'a rotation with an overlap': () => apps.client.rotateRuntimeKey({ ...ref, type: 2, overlapSeconds: 60, endPrevious: true }),
  'a look-up by the previous key': () => apps.client.lookUpApplication({ key: { case: 'httpKey', value: keys.httpKey } }),
  'an end of an overlap': () => apps.client.endKeyOverlap({ ...ref, type: 2 }),
  'a check of SECRET_KEY': () =>
    apps
      .connect()
      .service.start()
      .catch(() => 'The copies have no key of this secret'),
  'events that are pulled': () =>
    apps.client.pullApplicationEvents({ ...ref, after: { epoch: 'e1', sequence: 101n }, pageSize: 100 }),
  'a record of usage': () => apps.client.recordUsage({ counts: [{ applicationId: ref.applicationId, uploads: 1 }] }),
  'usage by day': () => apps.client.listDailyUsage({ ...ref, days: 90 }),
  'a deletion of old usage': () => createUsageSweep({ db: apps.kysely, clock: apps.clock.now })(new AbortController().signal),
  'a deletion': () => apps.client.deleteApplication(ref),
  'the first page of deletions': () => apps.client.listDeletedApplications({ pageSize: 10 }),
  'a further page of deletions since a time': () =>
    apps.client.listDeletedApplications({ pageSize: 10, pageToken: token(), deletedSince: timestampFromDate(new Date()) }),
  'the events after a sequence': () => apps.client.listApplicationEvents({ ...ref, afterSequence: 101n }),
  'live states': () => apps.client.batchGetLiveStates({ applicationIds: [ref.applicationId, randomUUID()] }),
  'a deletion of expired events': () =>
    deleteExpiredEvents(
      apps.kysely,
      { eventsAfter: new Date(0), deletionsAfter: new Date(0), count: 2 },
      { after: randomUUID(), applicationsMax: 250, eventsMax: 1_000 },
    ),
  'a poll for undelivered events': () => lockUndelivered(apps.kysely, 100),
};

describe.each(['force_custom_plan', 'force_generic_plan'] as const)('with 10,000 applications and %s', (mode) => {
  it.each(Object.keys(CALLS))('every statement of %s goes by an index', async (name) => {
    const sent = statements.get(name) ?? [];
    expect(sent.length).toBeGreaterThan(0);
    for (const statement of sent) {
      const plan = await planOf(statement, mode);
      const nodes = plan.map((node) => node['Node Type']);
      expect({ statement: statement.text, nodes }).not.toMatchObject({ nodes: expect.arrayContaining(['Seq Scan']) });
      expect(plan.some((node) => node['Index Name'])).toBe(true);
    }
  });
});

describe('a page', () => {
  const SEQUENCE_INDEX = 'application_event_sequence';
  it.each([
    ['of events', SEQUENCE_INDEX, () => apps.client.listApplicationEvents({ ...ref, afterSequence: 101n })],
    ['of deletions', 'application_event_deletions', () => apps.client.listDeletedApplications({ pageSize: 10 })],
    [
      'of deletions, further on and since a time',
      'application_event_deletions',
      () => apps.client.listDeletedApplications({ pageToken: token(), deletedSince: timestampFromDate(new Date()) }),
    ],
    ['of applications', 'application_of_account', () => page({})],
    ['of applications, further on', 'application_of_account', () => page({ pageToken: token() })],
  ])('is read in the order of an index, without a sort: %s', async (_, index, call) => {
    const [statement] = await statementsOf(call);
    if (!statement) throw new Error('No statement was sent');
    // The list of an account with few applications would be sorted.
    const isOfAccount = index === 'application_of_account';
    const values = statement.values.map((value, i) => (isOfAccount && i === 1 ? ref.accountId : value));
    const plan = await planOf({ ...statement, values }, isOfAccount ? 'force_custom_plan' : 'force_generic_plan');
    const nodes = plan.map((node) => node['Node Type']);
    // A statement of several pages has a loop around it.
    const limit = nodes.indexOf('Limit');
    expect(nodes.slice(limit, limit + 2)).toEqual(['Limit', 'Index Scan']);
    expect(nodes).not.toContain('Sort');
    expect(plan[limit + 1]?.['Index Name']).toBe(index);
  });
});
