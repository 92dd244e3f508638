import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { OnBytes } from '@latchkey/embedded/postgres/copy-files';
import { StartError } from '@latchkey/embedded/process/start-error';
import { ConfigError, readConfig } from '@latchkey/kit/config/settings';
import { endOnSignal } from '@latchkey/kit/process/end-on-signal';
import { z } from 'zod';
import { readDataSettings } from '../open-database.ts';

const settings = z.object({ OBJECT_STORE: z.string().default('disk') });

const EXIT = { failed: 1, usage: 2 } as const;
const PROGRESS_INTERVAL_MS = 2_000;
const MIB = 1024 * 1024;

/** A failure that the user can solve: one sentence. */
export class BackupError extends Error {}

export interface BackupTarget {
  readonly path: string;
  readonly dataDir: string;
  readonly objectsDir: string;
  readonly note: (line: string) => void;
  readonly stops: AsyncDisposableStack;
}

export const BACKUP_HELP = `<folder or file.tar>

Backs up the data folder of npm start: database, files and secrets. Latchkey may run meanwhile. The backup
shows one moment; it is started and compared with its files before it gets its name. Nothing is overwritten.

  DATA_DIR   the data folder (.data)
`;

export const RESTORE_HELP = `<folder or file.tar>

Restores a backup. Verifies its checksums first, and compares the database with the files afterwards. Nothing
is overwritten.

  DATA_DIR   the data folder to restore to (.data); it has to be empty or absent
`;

/**
 * Runs a backup or a restore as this process and sets its exit code. A signal ends it and removes
 * what is unfinished.
 *
 * @param command how it is run, for the help
 * @param help its usage, without the command
 */
export async function runBackupCommand(
  command: string,
  args: readonly string[],
  help: string,
  run: (target: BackupTarget) => Promise<void>,
): Promise<void> {
  const usage = `Usage: ${command} ${help}`;
  const fail = (text: string, code: number) => {
    process.stderr.write(`${text}\n`);
    process.exitCode = code;
  };
  const stops = new AsyncDisposableStack();
  let ending: ReturnType<typeof endOnSignal> | undefined;
  try {
    const options = { help: { type: 'boolean', short: 'h' } } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (values.help) return void process.stdout.write(usage);
    const [path, ...others] = positionals;
    if (path === undefined || others.length > 0) throw new Error('Name one folder or .tar file.');
    ending = endOnSignal(() => stops.disposeAsync(), EXIT.failed);
    await run({ ...readTarget(path), note: (line) => process.stderr.write(`${line}\n`), stops });
  } catch (err) {
    if (!ending) return fail(`${(err as Error).message.split('\n')[0]}\n\n${usage.trimEnd()}`, EXIT.usage);
    if (ending.begun()) return;
    fail(explain(err), EXIT.failed);
  }
  await stops.disposeAsync().catch((err: unknown) => fail(explain(err), EXIT.failed));
}

function readTarget(path: string): Pick<BackupTarget, 'path' | 'dataDir' | 'objectsDir'> {
  const { dataDir, databaseUrl, objectsDir } = readDataSettings(process.env);
  if (databaseUrl !== undefined || readConfig(settings, process.env).OBJECT_STORE !== 'disk') {
    throw new BackupError(
      'This command covers the PostgreSQL and the files of DATA_DIR, but DATABASE_URL or OBJECT_STORE names others: see docs/backup.md for these.',
    );
  }
  return { path: resolve(path), dataDir, objectsDir };
}

function explain(err: unknown): string {
  if (err instanceof ConfigError) return `Wrong settings:\n${err.message.replace(/^/gm, '  ')}`;
  if (err instanceof BackupError || err instanceof StartError) return err.message;
  const { message, code } = err as NodeJS.ErrnoException;
  if (code === 'ENOSPC') return `The disk is full: ${message}. Free space and run the command again.`;
  return `Failed: ${message || code}.`;
}

/**
 * Runs a long step, and reports its progress, at most every two seconds, and its end.
 *
 * @param step the start of a sentence: "Copying the database"
 * @param totalBytes where it is known
 */
export async function withProgress(
  step: string,
  note: (line: string) => void,
  work: (onBytes: OnBytes) => Promise<void>,
  totalBytes?: number,
): Promise<void> {
  const mib = (bytes: number) => (bytes / MIB).toFixed(1);
  let done = 0;
  let reportedAt = performance.now();
  await work((bytes) => {
    done += bytes;
    if (performance.now() - reportedAt < PROGRESS_INTERVAL_MS) return;
    reportedAt = performance.now();
    note(`  ${step}: ${mib(done)} ${totalBytes === undefined ? 'MiB so far' : `of ${mib(totalBytes)} MiB`}.`);
  });
  note(`  ${step}: ${mib(done)} MiB.`);
}
