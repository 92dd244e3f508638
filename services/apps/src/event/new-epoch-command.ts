import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import type { Command } from '@latchkey/kit/process/commands';
import { readMigrationConfig } from '@latchkey/kit/process/migrate-command';
import { orExit } from '@latchkey/kit/process/run-service';
import { changeEpoch } from './event-log.store.ts';

/** For operators who restored the database: no client resumes into other events then. */
export const newEpochCommand: Command = {
  summary: 'gives the event log another epoch, after a restore, and ends',
  async run() {
    const { DATABASE_URL: url } = orExit(() => readMigrationConfig(process.env));
    const logger = createLogger('apps', 'info');
    const database = createDatabase({ url, schema: 'apps', poolMax: 1, logger });
    try {
      process.stdout.write(`The event log has the epoch ${await changeEpoch(database.pool)}.\n`);
    } catch (err) {
      logger.fatal({ err }, 'the epoch was not changed');
      process.exitCode = 1;
    } finally {
      await database.close();
    }
  },
};
