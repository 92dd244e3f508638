import { parseArgs } from 'node:util';
import { ConfigError } from '@latchkey/kit/config/settings';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { endOnSignal } from '@latchkey/kit/process/end-on-signal';
import pg from 'pg';
import { SCHEMA } from '../../compose.ts';
import type { FilesConfig } from '../../config.ts';
import type { FilesDatabase } from '../../db/schema.ts';
import { createObjectStore } from '../object-store/create-object-store.ts';
import { createCounts, type ReconcileOptions } from './finding.ts';
import { type CheckOutputs, startProgress } from './progress.ts';
import { reconcile } from './reconciler.ts';
import { describeFinding, describeSummary } from './report.ts';

/** Exit codes of the command. */
export const EXIT = { done: 0, left: 1, failed: 2 } as const;

const CONNECTIONS_MAX = 4;

/** SQLSTATE of a missing table. */
const UNDEFINED_TABLE = '42P01';

const OPTIONS = {
  mend: { type: 'boolean', default: false },
  'skip-checksums': { type: 'boolean', default: false },
  force: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const help = (command: string) => `Usage: ${command} [--mend] [--skip-checksums] [--force]

Compares the files in the database with the objects in the store: files without an object, objects
without a file, objects whose bytes do not match their SHA-256, rests of uploads that nobody knows, and
recorded usage that does not add up. It may run while Latchkey does.

  --mend             mend what was found: remove files whose object is missing or damaged (as if they had
                     been deleted), remove what nobody knows, and record the usage anew
  --skip-checksums   compare sizes only, which reads no object
  --force            mend even if most files have no intact object, or most objects no file
  --help             show this

Exit code: 0 nothing is wrong, or all of it was mended; 1 something is left; 2 the check could not be done.
`;

/** The settings to check with, and the end of what they need. */
export interface CheckTarget {
  readonly config: FilesConfig;
  close(): Promise<void>;
}

/** The command as it is called. */
export interface CheckCommand {
  /** How, such as `npm run check-files --`, for the help. */
  readonly command: string;
  readonly args: readonly string[];
  /** Finds what to check, and starts what that needs. */
  open(): Promise<CheckTarget>;
}

/**
 * Runs a check as this process and sets its exit code. A signal, or the end of the script that
 * started this process, ends it immediately: each repair is one transaction, and the sweeper
 * removes objects that are left.
 */
export async function runCheckCommand({ command, args, open }: CheckCommand): Promise<void> {
  const values = readArguments(args, command);
  if (!values) return;
  if (values.help) return void process.stdout.write(help(command));
  const options = { mend: values.mend, skipChecksums: values['skip-checksums'], force: values.force };
  let target: CheckTarget | undefined;
  const ending = endOnSignal(async () => target?.close(), EXIT.failed);
  try {
    target = await open();
    process.exitCode = await runCheck(target.config, options, { command, out: process.stdout, err: process.stderr });
  } catch (err) {
    // A run that a signal cuts off fails only for that.
    if (ending.begun()) return;
    fail(explainError(err));
  }
  await target?.close();
}

function readArguments(args: readonly string[], command: string) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (err) {
    fail(`${(err as Error).message.split('\n')[0]}\n\n${help(command)}`);
    return undefined;
  }
}

function fail(text: string): void {
  process.stderr.write(`${text}\n`);
  process.exitCode = EXIT.failed;
}

/**
 * Checks the store that the settings name, and prints what it finds.
 *
 * @returns the exit code
 * @throws where the database or the store can't be used
 */
export async function runCheck(
  config: FilesConfig,
  options: ReconcileOptions,
  { command, out, err }: CheckOutputs & { readonly command: string },
): Promise<number> {
  const logger = createLogger('files', 'silent');
  const { DATABASE_URL: url } = config;
  const database = createDatabase<FilesDatabase>({ url, schema: SCHEMA, poolMax: CONNECTIONS_MAX, logger });
  const store = createObjectStore(config);
  const counts = createCounts();
  const progress = startProgress({ out, err }, counts);
  const startedAt = performance.now();
  try {
    const { host, pathname } = new URL(url);
    const target = config.OBJECT_STORE === 's3' ? `the bucket ${config.S3_BUCKET}` : `the folder ${config.OBJECTS_DIR}`;
    progress.print(`Comparing the database ${host}${pathname} with ${target}.`);
    const summary = await reconcile({ db: database.db, store, logger }, options, {
      counts,
      onFinding: (finding) => progress.print(describeFinding(finding)),
      onRepair(finding, outcome, cause) {
        if (outcome === 'failed') progress.print(`not mended: ${describeFinding(finding)} (${(cause as Error).message})`);
      },
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    progress.print(describeSummary(summary, { counts, mend: options.mend, command, seconds }));
    return summary.left > 0 ? EXIT.left : EXIT.done;
  } finally {
    progress.end();
    await store.close();
    await database.close();
  }
}

/** Why a check could not be done, without any secret. */
function explainError(err: unknown): string {
  if (err instanceof ConfigError) return `Wrong settings:\n${err.message.replace(/^/gm, '  ')}`;
  const { message, code } = err as NodeJS.ErrnoException;
  const reason =
    err instanceof pg.DatabaseError && code === UNDEFINED_TABLE
      ? 'the database has no tables of the files service. Start Latchkey once, or check the settings'
      : message || code || 'no answer';
  return `The check could not be done: ${reason.replace(/\.$/, '')}.`;
}
