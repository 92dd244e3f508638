import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import type { Command } from '@latchkey/kit/process/commands';
import { readMigrationConfig } from '@latchkey/kit/process/migrate-command';
import { orExit } from '@latchkey/kit/process/run-service';
import { changeEpoch } from './event-log.store.ts';

/** Gives the event log of a database another epoch, and returns it. */
export async function changeEpochOf(url: string, logger: Logger): Promise<string> {
  const { pool, close } = createDatabase({ url, schema: 'apps', poolMax: 1, logger });
  return changeEpoch(pool).finally(close);
}

/** For operators who restored the database: no client resumes into other events then. */
export const newEpochCommand: Command = {
  summary: 'gives the event log another epoch, after a restore, and ends',
  async run() {
    const { DATABASE_URL: url } = orExit(() => readMigrationConfig(process.env));
    const logger = createLogger('apps', 'info');
    try {
      process.stdout.write(`The event log has the epoch ${await changeEpochOf(url, logger)}.\n`);
    } catch (err) {
      logger.fatal({ err }, 'the epoch was not changed');
      process.exitCode = 1;
    }
  },
};
