import { join, resolve } from 'node:path';
import { acquireDataDirLock, type DataDirLock } from '@latchkey/embedded/data-dir-lock';
import { startPostgres } from '@latchkey/embedded/postgres';
import { findServiceDatabase, hasPostgres } from '@latchkey/embedded/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/service-databases';
import { StartError } from '@latchkey/embedded/start-error';
import { waitUntil } from '@latchkey/embedded/wait-until';
import type { CheckTarget } from '@latchkey/files/check/check-process';
import { readFilesConfig } from '@latchkey/files/config';
import { readConfig, urlSetting } from '@latchkey/kit/config';
import { z } from 'zod';
import { StopStack } from './stop-stack.ts';

const settings = z.object({
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  OBJECTS_DIR: z.string().optional(),
});

/** Stands in for what a check does not use, and for the database until it is known. */
const UNUSED = { REDIS_URL: 'redis://unused', SECRET_KEY: 'unused-'.repeat(8) };
const DATABASE_UNKNOWN = 'postgresql://unknown';

/** The role and schema of the files service. */
const SERVICE = 'files';

/** How long a Latchkey that is starting or stopping has until its database can be used, in milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * Finds the files of `npm start` and their database: the one that DATABASE_URL names, the one of a Latchkey that runs on the data folder, or else
 * that folder's own, which runs until the target is closed.
 *
 * @param env settings of `npm start`
 * @param note told what takes a moment
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when there is no database
 */
export async function openCheckTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<CheckTarget> {
  const { DATA_DIR, DATABASE_URL: given, OBJECTS_DIR } = readConfig(settings, env);
  const dataDir = resolve(DATA_DIR);
  const objectsDir = resolve(OBJECTS_DIR ?? join(dataDir, 'files'));
  const configFor = (url: string) => {
    return readFilesConfig({ ...env, ...UNUSED, DATABASE_URL: url, OBJECTS_DIR: objectsDir });
  };
  if (given !== undefined) return { config: configFor(given), close: async () => undefined };
  // Wrong settings are told before anything is started.
  configFor(DATABASE_UNKNOWN);
  if (!(await hasPostgres(dataDir))) {
    throw new StartError(`There is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as for npm start.`);
  }
  const stops = new StopStack();
  try {
    return { config: configFor(await openDatabase(dataDir, stops, note)), close: () => stops.stop() };
  } catch (err) {
    await stops.stop();
    throw err;
  }
}

async function openDatabase(dataDir: string, stops: StopStack, note: (line: string) => void): Promise<string> {
  let refusal: unknown;
  const found = await waitUntil(
    async () => {
      const lock = await acquireDataDirLock(dataDir).catch((err: unknown) => {
        if (!(err instanceof StartError)) throw err;
        refusal = err;
      });
      return lock ? startDatabase(dataDir, lock, stops, note) : findServiceDatabase(dataDir, SERVICE);
    },
    { timeoutMs: PATIENCE_MS, intervalMs: 200 },
  );
  if (found === undefined) throw refusal;
  return found;
}

/** Nobody else uses the data folder, and nobody can while its lock is ours. */
async function startDatabase(
  dataDir: string,
  lock: DataDirLock,
  stops: StopStack,
  note: (line: string) => void,
): Promise<string> {
  stops.push(() => lock.release());
  note('Latchkey does not run: starting its PostgreSQL for the check.');
  const postgres = await startPostgres({ dataDir, onProgress: note });
  stops.push(() => postgres.stop());
  const url = await readServiceDatabaseUrl(postgres, SERVICE);
  if (url === undefined) throw new StartError(`The database in ${dataDir} has no files yet: start Latchkey once.`);
  return url;
}
