import { z } from 'zod';
import { processSettings } from '../config/process-settings.ts';
import { readConfig } from '../config/settings.ts';
import { createLogger } from '../log/logger.ts';
import { runService } from '../process/run-service.ts';

/** A service as a process, whose database is no more than a line on standard output. */
const settings = z.object(processSettings({ port: 0, grpcPort: 0 }));
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
    async migrate() {
      say('migrated');
      return ['first', 'second'];
    },
  }),
);
