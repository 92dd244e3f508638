import { sql } from 'kysely';
import { migrateCommand } from '../process/migrate-command.ts';

/** The command `migrate` of a service with one migration. */
export const command = migrateCommand('test', {
  '20250101_a': { up: async (db) => void (await sql`create table a (id int)`.execute(db)) },
});
if (import.meta.main) await command.run();
