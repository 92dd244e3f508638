import { z } from 'zod';
import { processSettings, processSettingsWithoutDatabase } from '../config/process-settings.ts';
import { readConfig } from '../config/settings.ts';
import { createLogger } from '../log/logger.ts';
import { runService } from '../process/run-service.ts';

/**
 * A service as a process, with a database that is no more than a line on standard output, or
 * without one: `<kind>`.
 */
const PORTS = { port: 0, grpcPort: 0 };
const [kind] = process.argv.splice(2, 1);
const withDatabase = kind === 'with-database';
const settings = z.object(withDatabase ? processSettings(PORTS) : processSettingsWithoutDatabase(PORTS));
const say = (line: string) => void process.stdout.write(`${line}\n`);

await runService(
  'test',
  (env) => readConfig(settings, env),
  () => ({
    logger: createLogger('test', 'info'),
    routes: [],
    start: async () => say('started'),
    stop: async () => say('stopped'),
    checkReady: async () => undefined,
    ...(withDatabase && {
      migrate: async () => {
        say('migrated');
        return ['first', 'second'];
      },
    }),
  }),
);
