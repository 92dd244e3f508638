import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { stopSignal } from '@latchkey/cli/program/signals';
import { StartError } from '@latchkey/embedded/process/start-error';
import { ConfigError } from '@latchkey/kit/config/settings';
import { releaseUnusedMemory } from '@latchkey/kit/process/unused-memory';
import { createTerminalReporter } from './reporter.ts';
import type { Shape } from './settings.ts';
import { welcome } from './welcome.ts';

const HELP = `Usage: npm start [-- --deployed]

Runs Latchkey with an embedded PostgreSQL and Redis.

  --deployed   run each service in its own process, as in a larger deployment
  --help       show this

Settings are environment variables, among them:

  PORT           port of the REST interface (8080)
  REALTIME_PORT  port of live connections (8081)
  HOST           address to listen on (127.0.0.1; 0.0.0.0 with a PUBLIC_URL elsewhere)
  PUBLIC_URL     URL by which clients reach it (http://localhost:PORT)
  DATA_DIR       folder of all data (.data)
  DATABASE_URL   a PostgreSQL to use instead of the embedded one
  REDIS_URL      a Redis to use instead of the embedded one
  SECRET_KEY     secret of at least 32 characters (created in DATA_DIR)
  LOG_LEVEL      fatal, error, warn, info, debug, trace or silent (info)

docs/settings.md names the others.
`;

/** Limit of a stop before everything has started. */
const STOP_TIMEOUT_MS = 45_000;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const reporter = createTerminalReporter(process.stdout, process.stderr);
// The terminal may go away while we run.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

function fail(line: string, code = EXIT_FAILED): never {
  process.stderr.write(`${line}\n`);
  process.exit(code);
}

function explain(err: unknown): string {
  if (err instanceof ConfigError) return `Wrong settings:\n${err.message.replace(/^/gm, '  ')}`;
  if (err instanceof StartError) return err.message;
  return `Latchkey did not start: ${err instanceof Error ? err.message : String(err)}`;
}

function messagesOf(err: unknown): string[] {
  if (err instanceof SuppressedError) return [...messagesOf(err.suppressed), ...messagesOf(err.error)];
  return [(err as Error).message];
}

async function run(shape: Shape): Promise<never> {
  let stopTimeoutMs = STOP_TIMEOUT_MS;
  let uploadsAwaited = '';
  const limitStop = () => setTimeout(() => fail('Stopping took too long.'), stopTimeoutMs).unref();
  const signal = stopSignal();
  const asked = once(signal, 'abort').then(() => {
    reporter.note(`Stopping.${uploadsAwaited}`);
    limitStop();
  });
  // When our parent ends.
  process.once('disconnect', () => process.emit('SIGTERM'));
  process.channel?.unref();
  const crashed = new Promise<string>((resolve) => {
    process.on('uncaughtException', (err) => resolve(`Latchkey failed: ${err.message}`));
  });
  const startedAt = performance.now();
  const { startLatchkey } = await import('./latchkey.ts');
  const starting = startLatchkey({ shape, env: process.env, reporter, signal });
  const latchkey = await Promise.race([starting, crashed.then((line) => fail(line))]).catch((err: unknown) => {
    if (signal.aborted) process.exit(0);
    fail(explain(err));
  });
  releaseUnusedMemory();
  stopTimeoutMs = latchkey.stopTimeoutMs;
  uploadsAwaited = ' Running uploads may end first; Ctrl-C again ends everything immediately.';
  process.stdout.write(welcome(latchkey, shape, ((performance.now() - startedAt) / 1_000).toFixed(1)));

  const failure = await Promise.race([asked, crashed, latchkey.failed]);
  if (failure !== undefined) {
    reporter.warn(failure);
    limitStop();
  }
  await latchkey.stop().catch((err: unknown) => fail(`Not everything stopped cleanly: ${messagesOf(err).join('; ')}`));
  process.exit(failure === undefined ? 0 : EXIT_FAILED);
}

function readOptions() {
  try {
    return parseArgs({ options: { deployed: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (err) {
    fail(`${(err as Error).message.split('\n')[0]}\n\n${HELP}`, EXIT_USAGE);
  }
}

const { help, deployed } = readOptions();
if (help) process.stdout.write(HELP);
else await run(deployed ? 'deployed' : 'standalone');
