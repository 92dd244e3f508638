import { eventually } from '@latchkey/testkit/eventually';
import { expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, openTestIdentity } from '../testing/identity.ts';
import { createSomeKey } from '../testing/sample.ts';

const identity = await openTestIdentity();

/** Rows by the time that they name; the oldest are more than a batch. */
const FILL: ReadonlyArray<readonly [table: string, ageMs: number, insert: string]> = [
  [
    'session',
    7 * DAY_MS,
    `insert into session select gen_random_uuid(), account_id, sha256(n::text::bytea), at, at, at from given`,
  ],
  ['used_token', 0, 'insert into used_token select sha256(n::text::bytea), at from given'],
  [
    'api_key',
    60 * MINUTE_MS,
    `insert into api_key select (jsonb_populate_record(key, jsonb_build_object('id', gen_random_uuid(), 'public_id', 'key ' || n,
       'trusted_issuer_id', gen_random_uuid(), 'expires_at', at))).* from given, api_key key where trusted_issuer_id is null`,
  ],
  [
    'mail',
    60 * MINUTE_MS,
    `insert into mail select gen_random_uuid(), 'email_notice', null, '-', sha256(n::text::bytea), at, at from given`,
  ],
  [
    'deleted_account',
    30 * DAY_MS,
    'insert into deleted_account select gen_random_uuid(), $2, case when n > 0 then at end from given',
  ],
];

test('a running service deletes all rows that have ended, and no others', async () => {
  const { accountId, apiKey } = await createSomeKey(identity);
  const countOf = async (table: string) => (await identity.db.query(`select from ${table}`)).rowCount ?? 0;
  const before = new Map<string, number>();
  for (const [table, ageMs, insert] of FILL) {
    before.set(table, await countOf(table));
    const endedAt = new Date(identity.clock.now().getTime() - ageMs);
    const given = `with given as (select n, $1::uuid as account_id, $2::timestamptz + (n = 0)::int * interval '1 ms' as at
      from generate_series(0, 600) n) `;
    await identity.db.query(given + insert, [accountId, endedAt]);
  }
  const days = `insert into daily_requests select $1, $2::date - n, 1 from generate_series(0, 91) n`;
  await identity.db.query(days, [apiKey.id, identity.clock.now()]);
  // Only a deletion that is complete ends.
  identity.apps.failure = new Error('not now');
  const { service } = identity.connect();
  await service.start();
  await eventually(async () => {
    expect(await countOf('daily_requests')).toBe(90);
    for (const [table, count] of before) expect(await countOf(table), table).toBe(count + 1);
  });
  await service.stop();
});
