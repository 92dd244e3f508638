import { createLogger } from '../log/logger.ts';
import { runProcess } from '../process/lifecycle.ts';

/** A process for the tests of `runProcess`; its argument says how it behaves. */
const behaviour = process.argv[2] ?? '';
const logger = createLogger('child', 'info');
// Keeps the process alive the way a server does.
const work = setInterval(() => undefined, 1_000);

await runProcess(
  {
    async start() {
      if (behaviour === 'start-fails') throw new Error('no database');
      process.stdout.write('ready\n');
      if (behaviour === 'uncaught') setImmediate(() => Promise.reject(new Error('a defect')));
    },
    async stop() {
      process.stdout.write('stopping\n');
      if (behaviour === 'stop-fails') throw new Error('no way');
      if (behaviour === 'stop-hangs') await new Promise(() => undefined);
      clearInterval(work);
      process.stdout.write('stopped\n');
    },
  },
  logger,
  Number(process.argv[3] ?? 10_000),
);
