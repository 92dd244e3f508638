import { sql } from 'kysely';
import { type Migrations, migrate } from '../database/migrate.ts';

/** Migrates a schema that other processes migrate at the same time, and prints what it applied. */
const [url = '', schema = ''] = process.argv.slice(2);
const migrations: Migrations = {
  '20250101_a': { up: async (db) => void (await sql`create table a (id int)`.execute(db)) },
  '20250102_b': { up: async (db) => void (await sql`insert into a values (1)`.execute(db)) },
  '20250103_c': { up: async (db) => void (await sql`create table c (id int)`.execute(db)) },
};
process.stdout.write(JSON.stringify(await migrate(url, schema, migrations)));
