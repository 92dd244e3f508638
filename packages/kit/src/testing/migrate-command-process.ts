import { sql } from 'kysely';
import { migrateCommand } from '../process/migrate-command.ts';

/** The command `migrate` of a service with one migration. */
const command = migrateCommand('test', {
  '20250101_a': { up: async (db) => void (await sql`create table a (id int)`.execute(db)) },
});
await command.run([]);
