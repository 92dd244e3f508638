import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { SCOPES } from '@latchkey/contract/scopes';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, type KeySettings, OPEN_KEY, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

const someUnknownId = '00000000-0000-7000-8000-000000000000';
const inTheFuture = () => timestampFromDate(new Date(identity.clock.now().getTime() + MINUTE_MS));

test('a new key has the record that was asked for, and the text of a key', async () => {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  const settings = {
    name: '  Deploy key ',
    scopes: [...SCOPES],
    allApplications: false,
    applicationIds,
    expiresAt: inTheFuture(),
  };
  const { apiKey, plaintextKey } = await createSomeKey(identity, { ...settings, accountId });
  expect(plaintextKey).toMatch(/^lk_mgmt_[0-9A-Za-z]{16}_[0-9A-Za-z]{48}$/);
  const now = timestampFromDate(identity.clock.now());
  expect(apiKey).toMatchObject({ ...settings, name: 'Deploy key', createdAt: now, updatedAt: now });
  expect(apiKey).toMatchObject({ publicId: plaintextKey.slice(8, 24), keyLast4: plaintextKey.slice(-4) });
  for (const property of ['revokedAt', 'lastUsedAt', 'lastUsedIp']) expect(apiKey).not.toHaveProperty(property);
  const { apiKeys } = await identity.apiKeys.listApiKeys({ accountId });
  expect(apiKeys).toEqual([apiKey]);
});

test('keys are listed oldest first, whatever became of them, and for their account only', async () => {
  const accountId = await someAccountId(identity);
  const names = ['First', 'Second', 'Third'];
  const ids: string[] = [];
  for (const name of names) {
    ids.push((await createSomeKey(identity, { accountId, name, expiresAt: inTheFuture() })).apiKey.id);
  }
  await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: ids[1] ?? '' });
  identity.clock.advance(2 * MINUTE_MS);
  await createSomeKey(identity, { accountId, name: 'Fourth' });
  const { apiKeys } = await identity.apiKeys.listApiKeys({ accountId });
  expect(apiKeys.map((key) => key.name)).toEqual([...names, 'Fourth']);
  for (const other of [await someAccountId(identity), 'not-a-uuid', '']) {
    expect((await identity.apiKeys.listApiKeys({ accountId: other })).apiKeys).toEqual([]);
  }
});

test('the newest 200 revoked and expired keys stay, and every active one', async () => {
  const accountId = await someAccountId(identity);
  const { apiKey: active } = await createSomeKey(identity, { accountId });
  await identity.db.query(
    `insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids,
       revoked_at, expires_at, created_at, updated_at)
     select gen_random_uuid(), $1::uuid, i, left(gen_random_uuid()::text, 16), '', '', '{files:read}', true, '{}',
       case i % 2 when 0 then $2::timestamptz end, case i % 2 when 1 then $2::timestamptz end, $2::timestamptz + i * interval '1 s', $2
     from generate_series(1, 203) i`,
    [accountId, identity.clock.now()],
  );
  const { apiKey: created } = await createSomeKey(identity, { accountId });
  const { rows } = await identity.db.query<{ id: string; name: string }>('select id, name from api_key where account_id = $1', [
    accountId,
  ]);
  const names = rows.filter(({ id }) => id !== active.id && id !== created.id).map(({ name }) => Number(name));
  expect([rows.length, Math.min(...names)]).toEqual([202, 4]);
});

const invalid: Array<[string, KeySettings]> = [
  ['a name of 2 characters', { name: ' ab ' }],
  ['a name of 65 code points', { name: '😀'.repeat(65) }],
  ['a name with half a surrogate pair', { name: 'a key\ud800' }],
  ['no scope', { scopes: [] }],
  ['an unknown scope', { scopes: ['applications:read', 'applications:own'] }],
  ['a scope twice', { scopes: ['files:read', 'files:read'] }],
  ['an expiry in the year 10000', { expiresAt: { seconds: 253_402_300_800n } }],
  ['an expiry that no date can hold', { expiresAt: { seconds: 9_223_372_036_854_775_807n } }],
  ['applications together with all of them', { applicationIds: ['01a1fa3f-b3c3-743f-b08f-2741f24621e5'] }],
  ['a restricted key without applications', { allApplications: false }],
  ['more than 1,000 applications', { allApplications: false, applicationIds: Array(1_001).fill('x') }],
];

test.each(invalid)('a key with %s is refused', async (_what, part) => {
  const accountId = await someAccountId(identity);
  const refusal = await refusalOf(identity.apiKeys.createApiKey({ ...OPEN_KEY, ...part, accountId }));
  expect(refusal).toMatchObject({ reason: 'api_key_settings_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' });
});

test.each([
  ['a name of 3 characters', { name: 'key' }],
  ['a name of 64 code points', { name: '😀'.repeat(64) }],
  ['an expiry in the year 9999', { expiresAt: { seconds: 253_402_300_799n, nanos: 999_000_000 } }],
])('a key with %s is made', async (_what, part) => {
  expect((await createSomeKey(identity, part)).apiKey).toMatchObject(part);
});

test('keys are listed page by page, each once and in order', async () => {
  const { accountId, apiKey } = await createSomeKey(identity);
  await identity.db.query(
    `insert into api_key select (jsonb_populate_record(key, jsonb_build_object(
        'id', gen_random_uuid(), 'public_id', lpad(number::text, 16, 'p'), 'created_at', key.created_at + (number / 30) * interval '1 s'))).*
      from api_key key, generate_series(1, 44) number where key.id = $1`,
    [apiKey.id],
  );
  const ids: string[] = [];
  const sizes: number[] = [];
  let pageToken = '';
  do {
    const page = await identity.apiKeys.listApiKeys({ accountId, pageToken });
    ids.push(...page.apiKeys.map(({ id }) => id));
    sizes.push(page.apiKeys.length);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  const { rows } = await identity.db.query('select id from api_key where account_id = $1 order by created_at, id', [accountId]);
  expect(ids).toEqual(rows.map(({ id }) => id));
  expect(sizes).toEqual([20, 20, 5]);
  for (const token of ['nonsense', someUnknownId]) {
    expect(await identity.apiKeys.listApiKeys({ accountId, pageToken: token })).toMatchObject({ apiKeys: [], nextPageToken: '' });
  }
});

test('an application that is another account’s, unknown or no id is not found, with one answer', async () => {
  const accountId = await someAccountId(identity);
  const { apiKey } = await createSomeKey(identity, { accountId });
  const [mine = ''] = identity.apps.createApplications(accountId, 1);
  const [others = ''] = identity.apps.createApplications(await someAccountId(identity), 1);
  const refusals = [];
  for (const id of [others, crypto.randomUUID(), 'not-a-uuid', '\0', '\ud800']) {
    const settings = { ...OPEN_KEY, accountId, allApplications: false, applicationIds: [mine, id] };
    refusals.push(await refusalOf(identity.apiKeys.createApiKey(settings)));
    const change = { allApplications: false, applicationIds: { applicationIds: [mine, id] } };
    refusals.push(await refusalOf(identity.apiKeys.updateApiKey({ accountId, apiKeyId: apiKey.id, ...change })));
  }
  expect(refusals[0]).toMatchObject({ reason: 'application_not_found', kind: 'not_found', code: 'not_found' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
});

test('an application named more than once, in any case, is stored once', async () => {
  const accountId = await someAccountId(identity);
  const [id = ''] = identity.apps.createApplications(accountId, 1);
  const applicationIds = [id, id.toUpperCase(), id];
  const { apiKey } = await createSomeKey(identity, { accountId, allApplications: false, applicationIds });
  expect(apiKey.applicationIds).toEqual([id]);
});

test('a key is not made while the apps service can’t be asked, and the question carries the request’s id', async () => {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 1);
  const settings = { ...OPEN_KEY, accountId, allApplications: false, applicationIds };
  identity.apps.failure = new ConnectError('gone', Code.Unavailable);
  expect(await outcomeOf(identity.apiKeys.createApiKey(settings))).toBe('dependency_unavailable');
  identity.apps.failure = undefined;
  await identity.apiKeys.createApiKey(settings, { headers: { 'x-request-id': 'request-7' } });
  expect(identity.apps.requestIds.at(-1)).toBe('request-7');
});

const LIMIT = 20;

const createMany = (accountId: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => outcomeOf(identity.apiKeys.createApiKey({ ...OPEN_KEY, accountId }))));

test('concurrent creations stop at the limit of active keys', async () => {
  const accountId = await someAccountId(identity);
  const outcomes = await createMany(accountId, LIMIT + 10);
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(LIMIT);
  expect(outcomes.filter((outcome) => outcome === 'active_api_keys_limit_exceeded')).toHaveLength(10);
  const refusal = await refusalOf(identity.apiKeys.createApiKey({ ...OPEN_KEY, accountId }));
  expect(refusal).toMatchObject({ reason: 'active_api_keys_limit_exceeded', kind: 'forbidden', code: 'limit_exceeded' });
  expect((await identity.apiKeys.listApiKeys({ accountId })).apiKeys).toHaveLength(LIMIT);
});

test('at the limit an expired key can be changed but not become active', async () => {
  const { accountId, apiKey } = await createSomeKey(identity, { expiresAt: inTheFuture() });
  identity.clock.advance(MINUTE_MS);
  await createMany(accountId, LIMIT);
  const update = (change: object) => outcomeOf(identity.apiKeys.updateApiKey({ accountId, apiKeyId: apiKey.id, ...change }));
  expect(await update({ expiry: { case: 'neverExpires', value: true } })).toBe('active_api_keys_limit_exceeded');
  expect(await update({ name: 'Renamed' })).toBe('done');
});

test('a key of another account is neither changed nor revoked, with the answer for one that never was', async () => {
  const key = await createSomeKey(identity);
  const strangerId = await someAccountId(identity);
  const refusals = [];
  for (const [accountId, apiKeyId] of [
    [strangerId, crypto.randomUUID()],
    [strangerId, key.apiKey.id],
    [strangerId, 'not-a-uuid'],
    ['not-a-uuid', key.apiKey.id],
    [key.accountId, '\0'],
  ]) {
    const ref = { accountId, apiKeyId } as { accountId: string; apiKeyId: string };
    const change = { ...ref, name: 'Stolen', allApplications: false, applicationIds: { applicationIds: ['not-a-uuid'] } };
    refusals.push(await refusalOf(identity.apiKeys.updateApiKey(change)), await refusalOf(identity.apiKeys.revokeApiKey(ref)));
  }
  expect(refusals[0]).toMatchObject({ reason: 'api_key_not_found', kind: 'not_found', code: 'not_found' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
  expect((await identity.apiKeys.listApiKeys({ accountId: key.accountId })).apiKeys).toEqual([key.apiKey]);
});

test('revoking a key twice leaves the first time', async () => {
  const key = await createSomeKey(identity);
  const ref = { accountId: key.accountId, apiKeyId: key.apiKey.id };
  const { apiKey } = await identity.apiKeys.revokeApiKey(ref);
  expect(apiKey?.revokedAt).toEqual(timestampFromDate(identity.clock.now()));
  identity.clock.advance(MINUTE_MS);
  expect((await identity.apiKeys.revokeApiKey(ref)).apiKey).toEqual(apiKey);
});
