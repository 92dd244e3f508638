import { parseArgs } from 'node:util';
import { ConfigError } from '@latchkey/kit/config/settings';
import { isMissingTable } from '@latchkey/kit/database/database';
import { databaseHosts, splitDatabaseUrl } from '@latchkey/kit/database/database-url';
import { createLogger } from '@latchkey/kit/log/logger';
import { endOnSignal } from '@latchkey/kit/process/end-on-signal';
import type { FilesConfig } from '../../config.ts';
import { openStorage } from '../../context.ts';
import { checkStore } from '../object-store/check-store.ts';
import { type Counts, countOf, createCounts, FINDING_KINDS, type ReconcileOptions, reconcile } from './reconciler.ts';

export const EXIT = { done: 0, left: 1, failed: 2 } as const;

const CONNECTIONS_MAX = 4;
const PROGRESS_INTERVAL_MS = 3_000;
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

const OPTIONS = {
  repair: { type: 'boolean', default: false },
  'skip-checksums': { type: 'boolean', default: false },
  force: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const help = (command: string) => `Usage: ${command} [--repair] [--skip-checksums] [--force]

Compares the files in the database with the objects in the store: files without an object, objects
without a file, objects whose bytes do not match their SHA-256, unfinished uploads without an upload
intent, and recorded usage that does not add up. It may run while Latchkey does.

  --repair           repair what was found: delete files whose object is missing or damaged, remove
                     objects and unfinished uploads without a row, and record the usage again
  --skip-checksums   compare sizes only, which reads no object
  --force            repair even if most files have no intact object, or most objects no file
  --help             show this

Exit code: 0 nothing is wrong, or all of it was repaired; 1 something is left; 2 the check failed.
`;

const DOUBTS = {
  files: 'most files have no intact object, as if this were another folder or bucket than the one they were stored in',
  objects: 'most objects belong to no file, as if this were another database than the one their files are in',
} as const;

export interface CheckTarget {
  readonly config: FilesConfig;
  close(): Promise<void>;
}

/**
 * Runs a check as this process and sets its exit code. A signal ends it immediately: each repair is
 * one transaction, and the sweeper removes objects that are left.
 *
 * @param command how it is run, such as `npm run check-files --`, for the help
 * @param open finds what to check, and starts what that needs
 */
export async function runCheckCommand(command: string, args: readonly string[], open: () => Promise<CheckTarget>): Promise<void> {
  const fail = (text: string) => {
    process.stderr.write(`${text}\n`);
    process.exitCode = EXIT.failed;
  };
  let target: CheckTarget | undefined;
  let ending: ReturnType<typeof endOnSignal> | undefined;
  try {
    const { values } = parseArgs({ args: [...args], options: OPTIONS });
    if (values.help) return void process.stdout.write(help(command));
    ending = endOnSignal(async () => target?.close(), EXIT.failed);
    target = await open();
    const options = { repair: values.repair, skipChecksums: values['skip-checksums'], force: values.force };
    process.exitCode = await runCheck(target.config, options, { command, out: process.stdout, err: process.stderr });
  } catch (err) {
    if (!ending) return fail(`${(err as Error).message.split('\n')[0]}\n\n${help(command)}`);
    // A run that a signal cuts off fails only for that.
    if (ending.begun()) return;
    fail(explainError(err));
  }
  await target?.close();
}

/**
 * Checks the store that the settings name. Prints findings and a summary to `out`, progress to
 * `err`. Returns the exit code. Throws where the database or the store can't be used.
 */
export async function runCheck(
  config: FilesConfig,
  options: ReconcileOptions,
  { command, out, err }: Record<'out' | 'err', { write(text: string): unknown }> & { readonly command: string },
): Promise<number> {
  const { ctx, close } = openStorage({ ...config, DATABASE_POOL_MAX: CONNECTIONS_MAX }, createLogger('files', 'silent'));
  const counts = createCounts();
  const print = (text: string) => void out.write(`${text}\n`);
  const progress = setInterval(() => err.write(`${describeProgress(counts)}\n`), PROGRESS_INTERVAL_MS);
  const startedAt = performance.now();
  try {
    const { pathname } = new URL(splitDatabaseUrl(config.DATABASE_URL)[0] ?? '');
    const target = config.OBJECT_STORE === 's3' ? `the bucket ${config.S3_BUCKET}` : `the folder ${config.OBJECTS_DIR}`;
    print(`Comparing the database ${databaseHosts(config.DATABASE_URL)}${pathname} with ${target}.`);
    if (config.OBJECT_STORE === 's3') await checkStore(ctx, config);
    const { left, doubt } = await reconcile(ctx, options, counts, print);
    print(describeResult(counts, (performance.now() - startedAt) / 1_000));
    if (doubt) print(`Nothing was repaired: ${DOUBTS[doubt]}. Check the settings; --repair --force repairs all the same.`);
    else if (options.repair && counts.findings > 0) print(`Repaired ${counts.repaired}; ${left} left.`);
    else if (left > 0) print(`Nothing was changed. To repair it: ${command} --repair (${command} --help says how).`);
    return left > 0 ? EXIT.left : EXIT.done;
  } finally {
    clearInterval(progress);
    await close();
  }
}

function describeProgress({ files, bytesRead, objects, findings, repaired }: Counts): string {
  const read = `${countOf(files, 'file')}, ${describeBytes(bytesRead)} read`;
  const found = `${countOf(objects, 'object')}, ${countOf(findings, 'problem')}`;
  return `${read}, ${found}${repaired > 0 ? `, ${repaired} repaired` : ''}`;
}

function describeResult({ files, objects, applications, avatars, bytesRead, findings, byKind }: Counts, seconds: number): string {
  const checked = [countOf(files, 'file'), countOf(objects, 'object'), countOf(applications, 'application')];
  if (avatars > 0) checked.push(countOf(avatars, 'avatar'));
  const kinds = FINDING_KINDS.filter((kind) => byKind.has(kind)).map((kind) => countOf(byKind.get(kind) ?? 0, kind));
  const found = findings === 0 ? 'Nothing is wrong.' : `Found ${countOf(findings, 'problem')}: ${kinds.join(', ')}.`;
  return `Checked ${checked.join(', ')} in ${seconds.toFixed(1)} s; read ${describeBytes(bytesRead)}.\n${found}`;
}

function describeBytes(bytes: number): string {
  if (bytes < 1024) return countOf(bytes, 'byte');
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length);
  return `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power - 1]}`;
}

/** Reason of a failed check, without any secret. */
export function explainError(err: unknown): string {
  if (err instanceof ConfigError) return `Wrong settings:\n${err.message.replace(/^/gm, '  ')}`;
  const { message, code } = err as NodeJS.ErrnoException;
  const reason = isMissingTable(err)
    ? 'the database has no tables of the files service. Start Latchkey once, or check the settings'
    : message || code || 'no response';
  return `The check failed: ${reason.replace(/\.$/, '')}.`;
}
