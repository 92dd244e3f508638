import { randomUUID } from 'node:crypto';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { type Statement, statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type DeletionJobs, deletion, startDeletionJobs } from '../testing/deletion-jobs.fixture.ts';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, type KeySettings, keyCredential, type SomeKey, someAccountId } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';

let database: TestDatabase;
let jobs: DeletionJobs;
let identity: TestIdentity;
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  jobs = await startDeletionJobs();
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: jobs.redis.url });
});
afterAll(async () => {
  await identity.stop();
  await jobs.stop();
  await database.drop();
});

/** An account with applications. */
async function createOwner(applicationCount: number) {
  const accountId = await someAccountId(identity);
  return { accountId, applicationIds: identity.apps.createApplications(accountId, applicationCount) };
}

/** A key that is restricted to applications of its account. */
const restrict = (accountId: string, applicationIds: string[], settings: KeySettings = {}) =>
  createSomeKey(identity, { ...settings, accountId, allApplications: false, applicationIds });

const update = ({ accountId, apiKey }: SomeKey, change: object) =>
  identity.apiKeys.updateApiKey({ ...change, accountId, apiKeyId: apiKey.id });
const recordsOf = async (accountId: string) => (await identity.apiKeys.listApiKeys({ accountId })).apiKeys;

/** Has jobs done, a minute later. */
async function work(...added: Parameters<DeletionJobs['add']>) {
  identity.clock.advance(MINUTE_MS);
  await jobs.add(...added);
  await jobs.done();
}

describe('a job of a deletion', () => {
  it('says in the audit log which keys it took the application from, once however often it is done', async () => {
    const { accountId, applicationIds } = await createOwner(2);
    const [gone = '', other = ''] = applicationIds;
    const named = [await restrict(accountId, [gone]), await restrict(accountId, [other, gone])];
    await restrict(accountId, [other]);
    for (let i = 0; i < 2; i += 1) await work(deletion(accountId, gone));
    const entries = await auditReader(identity.service.routes)(accountId);
    const removals = entries.filter(({ action }) => action === 'api_key.application_removed');
    expect(removals.map(({ subject }) => subject).toSorted()).toEqual(
      named.map(({ apiKey }) => `api_key ${apiKey.id}`).toSorted(),
    );
    const changes = { applicationId: gone, name: named[0]?.apiKey.name };
    for (const entry of removals) expect(entry).toMatchObject({ actor: 'service', applicationId: gone, changes });
  });

  it('takes the application out of every key of the account that names it, and out of nothing else', async () => {
    const { accountId, applicationIds } = await createOwner(3);
    const [gone = '', second = '', third = ''] = applicationIds;
    const lists = [[second, gone, third], [gone], [third, second], [third, gone]];
    for (const list of lists) await restrict(accountId, list);
    await createSomeKey(identity, { accountId });
    const before = await recordsOf(accountId);
    await work(deletion(accountId, gone));
    const after = await recordsOf(accountId);
    expect(after.map((key) => key.applicationIds)).toEqual([[second, third], [], [third, second], [third], []]);
    expect(after.map((key) => key.allApplications)).toEqual([false, false, false, false, true]);
    const others = after.map(({ applicationIds: _ids, updatedAt: _at, ...rest }) => rest);
    expect(others).toEqual(before.map(({ applicationIds: _ids, updatedAt: _at, ...rest }) => rest));
  });

  it('moves updatedAt of the keys that change, and of no others', async () => {
    const { accountId, applicationIds } = await createOwner(2);
    const [gone = '', stays = ''] = applicationIds;
    await restrict(accountId, [gone, stays]);
    await restrict(accountId, [stays]);
    const [, untouched] = await recordsOf(accountId);
    await work(deletion(accountId, gone));
    const [changed, other] = await recordsOf(accountId);
    expect(Number(changed?.updatedAt?.seconds)).toBe(identity.clock.now().getTime() / 1_000);
    expect(other).toEqual(untouched);
  });

  it('never moves updatedAt back', async () => {
    const { accountId, applicationIds } = await createOwner(1);
    const key = await restrict(accountId, applicationIds);
    await identity.db.query(`update api_key set updated_at = updated_at + interval '1 hour' where id = $1`, [key.apiKey.id]);
    const [before] = await recordsOf(accountId);
    await work(deletion(accountId, applicationIds[0] ?? ''));
    expect(await recordsOf(accountId)).toEqual([{ ...before, applicationIds: [] }]);
  });

  it('changes nothing the second time', async () => {
    const { accountId, applicationIds } = await createOwner(2);
    const [gone = ''] = applicationIds;
    await restrict(accountId, applicationIds);
    await work(deletion(accountId, gone));
    const before = await recordsOf(accountId);
    await work(deletion(accountId, gone), deletion(accountId, gone.toUpperCase()));
    expect(await recordsOf(accountId)).toEqual(before);
    expect(before[0]?.applicationIds).toEqual(applicationIds.slice(1));
  });

  it('clears revoked keys and expired ones as well', async () => {
    const { accountId, applicationIds } = await createOwner(1);
    const revoked = await restrict(accountId, applicationIds);
    const expiresAt = { seconds: BigInt(identity.clock.now().getTime() / 1_000 + 1) };
    await restrict(accountId, applicationIds, { expiresAt });
    await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: revoked.apiKey.id });
    await work(deletion(accountId, applicationIds[0] ?? ''));
    expect((await recordsOf(accountId)).map((key) => key.applicationIds)).toEqual([[], []]);
  });

  it.each([
    ['an application that no key names', (accountId: string) => deletion(accountId, randomUUID())],
    ['an account that there is none such', (_: string, id: string) => deletion(randomUUID(), id)],
    ['another account than the key’s', (_: string, id: string, other: string) => deletion(other, id)],
    ['a pause', (accountId: string, id: string) => ({ ...deletion(accountId, id), name: 'paused' })],
  ])('of %s changes no key', async (_what, jobOf) => {
    const { accountId, applicationIds } = await createOwner(1);
    await restrict(accountId, applicationIds);
    const other = await someAccountId(identity);
    const before = await recordsOf(accountId);
    await work(jobOf(accountId, applicationIds[0] ?? '', other));
    expect(await jobs.failed()).toBe(0);
    expect(await recordsOf(accountId)).toEqual(before);
  });

  it('leaves another account’s key that names the same application', async () => {
    const { accountId, applicationIds } = await createOwner(1);
    await restrict(accountId, applicationIds);
    const stranger = await createSomeKey(identity);
    await identity.db.query('update api_key set all_applications = false, application_ids = $2 where id = $1', [
      stranger.apiKey.id,
      applicationIds,
    ]);
    await work(deletion(accountId, applicationIds[0] ?? ''));
    expect((await recordsOf(accountId))[0]?.applicationIds).toEqual([]);
    expect((await recordsOf(stranger.accountId))[0]?.applicationIds).toEqual(applicationIds);
  });
});

describe('a key whose last application was deleted', () => {
  let key: SomeKey;
  let next: string;
  beforeEach(async () => {
    const { accountId, applicationIds } = await createOwner(2);
    const [gone = '', other = ''] = applicationIds;
    key = await restrict(accountId, [gone]);
    next = other;
    await work(deletion(accountId, gone));
  });

  it('is valid, and for nothing', async () => {
    const credential = keyCredential(key.plaintextKey);
    const { principal } = await identity.authentication.authenticate({ credential });
    expect(principal?.credentialId).toBe(key.apiKey.id);
    expect(principal).toMatchObject({ kind: PrincipalKind.API_KEY, allApplications: false, applicationIds: [] });
  });

  it('can be changed otherwise, be given another list, or be opened; not be given an empty one', async () => {
    expect((await update(key, { name: 'Still here' })).apiKey).toMatchObject({ allApplications: false, applicationIds: [] });
    expect(await outcomeOf(update(key, { scopes: { scopes: ['files:read'] } }))).toBe('done');
    expect(await outcomeOf(update(key, { applicationIds: { applicationIds: [] } }))).toBe('api_key_conflict');
    expect(await outcomeOf(update(key, { name: 'Empty', applicationIds: { applicationIds: [] } }))).toBe('api_key_conflict');
    const emptied = { allApplications: false, applicationIds: { applicationIds: [] } };
    expect(await outcomeOf(update(key, emptied))).toBe('api_key_settings_invalid');
    const given = (await update(key, { applicationIds: { applicationIds: [next] } })).apiKey;
    expect(given).toMatchObject({ name: 'Still here', allApplications: false, applicationIds: [next] });
    expect((await update(key, { allApplications: true })).apiKey).toMatchObject({ allApplications: true });
  });
});

describe('a job that', () => {
  it.each([{}, { applicationId: 'x', accountId: randomUUID() }, { applicationId: randomUUID() }, { accountId: '\0' }])(
    'makes no sense harms nobody, and is kept to be tried again and looked at: %j',
    async (data) => {
      onTestFinished(() => jobs.redis.empty());
      const { accountId, applicationIds } = await createOwner(1);
      await restrict(accountId, applicationIds);
      await work({ id: randomUUID(), name: 'deleted', data }, deletion(accountId, applicationIds[0] ?? ''));
      await eventually(async () => expect((await recordsOf(accountId))[0]?.applicationIds).toEqual([]));
      await eventually(async () => expect(await jobs.failed()).toBe(1));
    },
  );

  it('fails is tried again until the database bears it', async () => {
    const { accountId, applicationIds } = await createOwner(1);
    await restrict(accountId, applicationIds);
    await identity.db.query('alter table api_key rename to api_key_away');
    await jobs.add(deletion(accountId, applicationIds[0] ?? ''));
    await eventually(async () => expect(await jobs.failed()).toBe(1)).finally(() =>
      identity.db.query('alter table api_key_away rename to api_key'),
    );
    const cleared = async () => expect((await recordsOf(accountId))[0]?.applicationIds).toEqual([]);
    await eventually(cleared, { timeoutMs: 10_000 });
  });
});

describe('a thousand keys', () => {
  const KEYS = 1_000;
  const isUpdate = ({ text }: Statement) => /^\s*update "api_key"/.test(text);

  it('are cleared fifty at a time, each once', async () => {
    const { accountId, applicationIds } = await createOwner(3);
    const [gone = ''] = applicationIds;
    await identity.db.query(
      `insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids, created_at, updated_at)
       select gen_random_uuid(), $1::uuid, 'One of many', $1::text || '-' || i, '-', '-', '{files:read}', false, $2, now(), now() from generate_series(1, $3) i`,
      [accountId, applicationIds, KEYS],
    );
    const sent = await statementsOf(() => work(deletion(accountId, gone)));
    expect(sent.filter(isUpdate)).toHaveLength(KEYS / 50 + 1);
    const { rows } = await identity.db.query('select distinct application_ids from api_key where account_id = $1', [accountId]);
    expect(rows).toEqual([{ application_ids: applicationIds.slice(1) }]);
  });
});
