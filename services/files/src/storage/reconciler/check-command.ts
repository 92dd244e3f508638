import { ConfigError } from '@latchkey/kit/config';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import pg from 'pg';
import { SCHEMA } from '../../compose.ts';
import type { FilesConfig } from '../../config.ts';
import type { FilesDatabase } from '../../db/schema.ts';
import { createObjectStore } from '../object-store/create-object-store.ts';
import { type CheckOptions, checkFiles } from './check-files.ts';
import { type CheckOutputs, createCheckTerminal } from './check-terminal.ts';
import { describeSummary } from './describe.ts';

/** Exit codes of the command. */
export const EXIT = { done: 0, left: 1, failed: 2 } as const;

/** Enough for what is looked at at once. */
const CONNECTIONS_MAX = 4;

/**
 * Checks the store that the settings name, and tells of it.
 *
 * @param command how the command is called
 * @returns the exit code
 * @throws where the database or the store can't be used; {@link explainCheckError} has the sentence
 */
export async function runCheck(
  config: FilesConfig,
  options: CheckOptions,
  { command, ...outputs }: CheckOutputs & { readonly command: string },
): Promise<number> {
  const logger = createLogger('files', 'silent');
  const database = createDatabase<FilesDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: CONNECTIONS_MAX,
    logger,
  });
  const store = createObjectStore(config);
  const terminal = createCheckTerminal(outputs);
  const startedAt = performance.now();
  try {
    terminal.print(`Comparing ${describeDatabase(config)} with ${describeStore(config)}.`);
    const summary = await checkFiles({ db: database.db, store }, options, terminal);
    terminal.print(describeSummary(summary, { mend: options.mend, command, seconds: (performance.now() - startedAt) / 1_000 }));
    return summary.left > 0 ? EXIT.left : EXIT.done;
  } finally {
    terminal.close();
    await store.close();
    await database.close();
  }
}

/** SQLSTATE of a table that is not there. */
const UNDEFINED_TABLE = '42P01';

/** Why a check could not be done, without any secret. */
export function explainCheckError(err: unknown): string {
  if (err instanceof ConfigError) return `Wrong settings:\n${err.message.replace(/^/gm, '  ')}`;
  if (err instanceof pg.DatabaseError && err.code === UNDEFINED_TABLE) {
    return 'The check could not be done: the database has no tables of the files service. Start Latchkey once, or check the settings.';
  }
  const { message, code } = err as NodeJS.ErrnoException;
  return `The check could not be done: ${(message || code || 'no answer').replace(/\.$/, '')}.`;
}

function describeDatabase({ DATABASE_URL }: FilesConfig): string {
  const { host, pathname } = new URL(DATABASE_URL);
  return `the database ${host}${pathname}`;
}

function describeStore(config: FilesConfig): string {
  return config.OBJECT_STORE === 's3' ? `the bucket ${config.S3_BUCKET}` : `the folder ${config.OBJECTS_DIR}`;
}
