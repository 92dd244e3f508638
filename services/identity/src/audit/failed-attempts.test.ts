import { randomUUID } from 'node:crypto';
import { createDatabase, type Database } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { IdentityDatabase } from '../db/schema.ts';
import { migrateIdentity } from '../testing/identity.fixture.ts';
import { createFailedAttempts, type FailedAttempts } from './failed-attempts.ts';

const WAITING_MAX = 5;
const logger = createLogger('identity', 'silent');
const ANYBODY = { kind: 'anonymous', credentialId: undefined, address: undefined, requestId: undefined } as const;

let database: TestDatabase;
let own: Database<IdentityDatabase>;
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  own = createDatabase({ url: database.url, schema: 'identity', logger });
});
afterAll(async () => {
  await own.close();
  await database.drop();
});

const fail = (attempts: FailedAttempts, accountId: string = randomUUID()) =>
  attempts.record({ accountId, action: 'account.sign_in_failed', reason: 'wrong_password', origin: ANYBODY });

/** Does something while what is written waits for the table. */
async function whileTableIsHeld(flush: () => Promise<void>, meanwhile: () => unknown): Promise<void> {
  await withClient(database.url, async (client) => {
    await client.query('begin');
    await client.query('lock table identity.audit_entry');
    void flush();
    await eventually(async () => {
      const { rowCount } = await client.query(
        `select from pg_locks where not granted and relation = 'identity.audit_entry'::regclass`,
      );
      return rowCount === 1;
    });
    await meanwhile();
    await client.query('commit');
  });
  await flush();
}

it('no more wait than there may, however long the database takes for those before them', async () => {
  const attempts = createFailedAttempts(own.db, logger, WAITING_MAX);
  const before = await countEntries();
  const failOften = () => {
    for (let i = 0; i < WAITING_MAX * 2; i += 1) fail(attempts);
  };
  failOften();
  await whileTableIsHeld(attempts.flush, () => {
    // Time and again, as time goes by.
    for (let i = 0; i < 4; i += 1) {
      failOften();
      void attempts.flush();
    }
  });
  expect((await countEntries()) - before).toBe(WAITING_MAX * 2);
});

it('are dated when they were, in their order, however long each takes to be written', async () => {
  const attempts = createFailedAttempts(own.db, logger);
  const accounts = [randomUUID(), randomUUID(), randomUUID()];
  for (const accountId of accounts) fail(attempts, accountId);
  const failedBy = await databaseTime();
  await whileTableIsHeld(attempts.flush, () => eventually(async () => (await databaseTime()) > failedBy + 1_000));
  const { rows } = await own.pool.query('select account_id, at from audit_entry where account_id = any($1) order by at, id', [
    accounts,
  ]);
  expect(rows.map(({ account_id }) => account_id)).toEqual(accounts);
  for (const { at } of rows) expect(at.getTime()).toBeLessThan(failedBy + 500);
});

async function countEntries(): Promise<number> {
  return (await own.pool.query('select from audit_entry')).rowCount ?? 0;
}

async function databaseTime(): Promise<number> {
  return (await own.pool.query('select clock_timestamp() as now')).rows[0].now.getTime();
}
