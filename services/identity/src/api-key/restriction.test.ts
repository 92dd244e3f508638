import { createRouterTransport } from '@connectrpc/connect';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { createLogger } from '@latchkey/kit/log/logger';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, someAccountId } from '../testing/sample.ts';
import { createDeletionFollower, removeFromRestrictions } from './restriction.ts';

const identity = await openTestIdentity();
const logger = createLogger('identity', 'silent');
const ctx = { db: identity.kysely, clock: identity.clock.now, logger };

/** A key that lists two applications of its account. */
async function createRestrictedKey() {
  const accountId = await someAccountId(identity);
  const [gone = '', stays = ''] = identity.apps.createApplications(accountId, 2);
  const { apiKey } = await createSomeKey(identity, { accountId, allApplications: false, applicationIds: [gone, stays] });
  return { accountId, gone, stays, ref: { accountId, apiKeyId: apiKey.id }, apiKey };
}
type RestrictedKey = Awaited<ReturnType<typeof createRestrictedKey>>;

/** A key that lists an application deleted so long ago. */
async function createStale(ageMs: number): Promise<RestrictedKey> {
  const key = await createRestrictedKey();
  identity.apps.deleteApplication(key.accountId, key.gone, new Date(identity.clock.now().getTime() - ageMs));
  return key;
}

const stored = async ({ accountId }: Pick<RestrictedKey, 'accountId'>) =>
  (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0];
const isCleared = async (key: RestrictedKey) => expect((await stored(key))?.applicationIds).toEqual([key.stays]);
const remove = ({ accountId }: RestrictedKey, applicationId: string) => removeFromRestrictions(ctx, { accountId, applicationId });

test('a deleted application is removed from every key of its account, revoked ones too, and from no other', async () => {
  const key = await createRestrictedKey();
  await identity.apiKeys.revokeApiKey(key.ref);
  await identity.db.query(
    `insert into api_key select (jsonb_populate_record(key, jsonb_build_object('id', gen_random_uuid(), 'public_id', 'many-' || i))).*
     from api_key key, generate_series(1, 119) i where key.id = $1`,
    [key.apiKey.id],
  );
  const other = await createRestrictedKey();
  await identity.db.query('update api_key set application_ids = $2 where id = $1', [other.apiKey.id, [key.gone]]);
  identity.clock.advance(MINUTE_MS);
  await remove(key, key.gone);
  const rows = 'select distinct application_ids, updated_at from api_key where account_id = $1';
  const expected = { application_ids: [key.stays], updated_at: identity.clock.now() };
  expect((await identity.db.query(rows, [key.accountId])).rows).toEqual([expected]);
  expect((await stored(other))?.applicationIds).toEqual([key.gone]);
  const entries = await auditReader(identity.service.routes)(key.accountId);
  const changes = { applicationId: key.gone, name: key.apiKey.name };
  expect(entries.at(-1)).toMatchObject({ action: 'api_key.application_removed', actor: 'service', changes });
});

test('a key whose last application was deleted stays restricted and can access none', async () => {
  const key = await createRestrictedKey();
  for (const applicationId of [key.gone, key.stays, key.gone]) await remove(key, applicationId);
  expect(await stored(key)).toMatchObject({ allApplications: false, applicationIds: [] });
});

test.each(['before', 'after'])('a removal loses no concurrent change of the key that began %s it', async (order) => {
  const key = await createRestrictedKey();
  const change = () => outcomeOf(identity.apiKeys.updateApiKey({ ...key.ref, name: 'Together' }));
  const release = await holdLocks(identity.db, 'select from api_key where id = $1 for update', [key.apiKey.id]);
  const changes: Array<Promise<unknown>> = [];
  const removal = () => remove(key, key.gone);
  for (const one of order === 'before' ? [change, removal] : [removal, change]) {
    changes.push(one());
    await waitersForLocks(identity.db, changes.length);
  }
  await release();
  expect(await Promise.all(changes)).toContain('done');
  expect(await stored(key)).toMatchObject({ name: 'Together', applicationIds: [key.stays] });
});

test('the first reconciliation covers all deletions, and a second one writes no row', async () => {
  const stale: RestrictedKey[] = [];
  for (let i = 0; i < 10; i += 1) stale.push(await createStale(i * DAY_MS));
  const appsTransport = createRouterTransport(({ service }) => void service(ApplicationService, identity.apps.impl));
  const { reconcile } = createDeletionFollower(ctx, { redisUrl: 'redis://localhost:1', appsTransport });
  const { signal } = new AbortController();
  await reconcile(signal);
  for (const one of stale) await isCleared(one);
  const sent = await statementsOf(async () => reconcile(signal));
  expect(sent.filter(({ text }) => text.startsWith('update'))).toEqual([]);
});

test('deletions are reconciled while Redis is down', async () => {
  const stale = await createStale(0);
  const { service } = identity.connect({ env: { REDIS_URL: 'redis://localhost:1' } });
  await service.start();
  await eventually(() => isCleared(stale));
  await service.stop();
});
