import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import * as applications from './migrations/20261120-180000-applications.ts';
import * as eventDelivery from './migrations/20261120-220000-event-delivery.ts';

it('the migration takes events that are there for delivered and later ones for not, also when it is applied twice', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on('error', () => undefined);
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  onTestFinished(() => db.destroy());
  // As the release before writes them.
  const insert = () =>
    pool.query(
      `insert into application_event (id, application_id, account_id, sequence, type, data, created_at)
        values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'deleted', '{}', now())`,
    );
  const delivered = async () =>
    (await pool.query('select delivered_at is not null as is from application_event order by 1')).rows;
  await applications.up(db);
  await insert();
  await eventDelivery.up(db);
  expect(await delivered()).toEqual([{ is: true }]);
  await insert();
  await eventDelivery.up(db);
  expect(await delivered()).toEqual([{ is: false }, { is: true }]);
});
