import { z } from 'zod';
import { readConfig } from '../config/settings.ts';
import { databaseUrlSetting } from '../database/database-url.ts';
import { waitForDatabase } from '../database/database-wait.ts';
import { type Migrations, migrate } from '../database/migrate.ts';
import { createLogger } from '../log/logger.ts';
import type { Command } from './commands.ts';
import { orExit } from './run-service.ts';

const settings = z.object({ DATABASE_URL: databaseUrlSetting });

/** Reads the settings of a migration, which needs no secret. Throws ConfigError. */
export const readMigrationConfig = (env: NodeJS.ProcessEnv) => readConfig(settings, env);

export function migrateCommand(schema: string, migrations: Migrations): Command {
  return {
    summary: 'brings the schema up to date, and ends',
    async run() {
      const { DATABASE_URL } = orExit(() => readMigrationConfig(process.env));
      const logger = createLogger(schema, 'info');
      try {
        await waitForDatabase(DATABASE_URL, { logger });
        const applied = await migrate(DATABASE_URL, schema, migrations);
        process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`);
      } catch (err) {
        logger.fatal({ err }, 'migration failed');
        process.exitCode = 1;
      }
    },
  };
}
