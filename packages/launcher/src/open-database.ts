import { join, resolve } from 'node:path';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { findServiceDatabase, hasPostgres } from '@latchkey/embedded/postgres/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/postgres/service-databases';
import { acquireDataDirLock } from '@latchkey/embedded/process/data-dir-lock';
import { StartError } from '@latchkey/embedded/process/start-error';
import { waitUntil } from '@latchkey/embedded/process/wait-until';
import { readConfig, urlSetting } from '@latchkey/kit/config/settings';
import { z } from 'zod';

/** Longest wait of a command for the database of a Latchkey that is starting or stopping. */
const RUNNING_TIMEOUT_MS = 30_000;

const settings = z.object({
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  OBJECTS_DIR: z.string().optional(),
});

/** The settings of `npm start` by which a command finds its data. */
export function readDataSettings(env: NodeJS.ProcessEnv) {
  const { DATA_DIR, DATABASE_URL, OBJECTS_DIR } = readConfig(settings, env);
  const dataDir = resolve(DATA_DIR);
  return { dataDir, databaseUrl: DATABASE_URL, objectsDir: resolve(OBJECTS_DIR ?? join(dataDir, 'files')) };
}

export async function requireDatabase(dataDir: string): Promise<void> {
  if (await hasPostgres(dataDir)) return;
  throw new StartError(`There is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as for npm start.`);
}

/**
 * Finds the database of a Latchkey that runs on a data folder, or else starts the folder's own
 * until it is closed, and no Latchkey can start before.
 *
 * @param service the name of its role and its schema
 * @param purpose why the PostgreSQL is started: the end of a sentence
 * @throws {StartError} when the folder has no database
 */
export async function openDatabase(dataDir: string, service: string, purpose: string, note: (line: string) => void) {
  await requireDatabase(dataDir);
  let rejection: unknown;
  const lockOrFind = async () => {
    try {
      return await acquireDataDirLock(dataDir);
    } catch (err) {
      if (!(err instanceof StartError)) throw err;
      rejection = err;
      return findServiceDatabase(dataDir, service);
    }
  };
  const found = await waitUntil(lockOrFind, { timeoutMs: RUNNING_TIMEOUT_MS, intervalMs: 200 });
  if (found === undefined) throw rejection;
  if (typeof found === 'string') return { url: found, running: true, close: async () => undefined };

  const stops = new AsyncDisposableStack();
  stops.defer(() => found.release());
  try {
    note(`Latchkey does not run: starting its PostgreSQL for ${purpose}.`);
    const postgres = await startPostgres({ dataDir, onProgress: note });
    stops.defer(() => postgres.stop());
    const url = await readServiceDatabaseUrl(postgres, service);
    if (url !== undefined) return { url, running: false, close: () => stops.disposeAsync() };
    throw new StartError(`The database in ${dataDir} has nothing of ${service} yet: start Latchkey once.`);
  } catch (err) {
    await stops.disposeAsync();
    throw err;
  }
}
