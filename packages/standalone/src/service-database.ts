import { acquireDataDirLock, type DataDirLock } from '@latchkey/embedded/data-dir-lock';
import { startPostgres } from '@latchkey/embedded/postgres';
import { findServiceDatabase, hasPostgres } from '@latchkey/embedded/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/service-databases';
import { StartError } from '@latchkey/embedded/start-error';
import { waitUntil } from '@latchkey/embedded/wait-until';
import { StopStack } from './stop-stack.ts';

/** How long a Latchkey that is starting or stopping has until its database can be used, in milliseconds. */
const PATIENCE_MS = 30_000;

/** Which database a command needs, and for what. */
export interface ServiceDatabaseOptions {
  readonly dataDir: string;
  /** Name of the service, which is that of its role and schema. */
  readonly service: string;
  /** What the PostgreSQL is started for: the end of a sentence. */
  readonly purpose: string;
  /** Told what takes a moment. */
  readonly note: (line: string) => void;
}

/** The database of a data folder, for as long as a command runs. */
export interface ServiceDatabase {
  readonly url: string;
  /** Whether a Latchkey runs on the folder. If none does, none can until this is closed. */
  readonly running: boolean;
  close(): Promise<void>;
}

/**
 * Makes sure that there is a database in a data folder, running or not.
 *
 * @throws {StartError} when there is none
 */
export async function requireDatabase(dataDir: string): Promise<void> {
  if (await hasPostgres(dataDir)) return;
  throw new StartError(`There is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as for npm start.`);
}

/**
 * Finds the database of a Latchkey that runs on a data folder, or else starts that folder's own until it is closed.
 *
 * @throws {StartError} when there is none
 */
export async function openServiceDatabase(options: ServiceDatabaseOptions): Promise<ServiceDatabase> {
  await requireDatabase(options.dataDir);
  const stops = new StopStack();
  try {
    return { ...(await findOrStart(options, stops)), close: () => stops.stop() };
  } catch (err) {
    await stops.stop();
    throw err;
  }
}

async function findOrStart(options: ServiceDatabaseOptions, stops: StopStack): Promise<Omit<ServiceDatabase, 'close'>> {
  const { dataDir, service } = options;
  let refusal: unknown;
  const found = await waitUntil(
    async () => {
      const lock = await acquireDataDirLock(dataDir).catch((err: unknown) => {
        if (!(err instanceof StartError)) throw err;
        refusal = err;
      });
      if (lock) return { url: await startDatabase(options, lock, stops), running: false };
      const url = await findServiceDatabase(dataDir, service);
      return url === undefined ? undefined : { url, running: true };
    },
    { timeoutMs: PATIENCE_MS, intervalMs: 200 },
  );
  if (found === undefined) throw refusal;
  return found;
}

/** Nobody else uses the data folder, and nobody can while its lock is ours. */
async function startDatabase(options: ServiceDatabaseOptions, lock: DataDirLock, stops: StopStack): Promise<string> {
  const { dataDir, service, purpose, note } = options;
  stops.push(() => lock.release());
  note(`Latchkey does not run: starting its PostgreSQL for ${purpose}.`);
  const postgres = await startPostgres({ dataDir, onProgress: note });
  stops.push(() => postgres.stop());
  const url = await readServiceDatabaseUrl(postgres, service);
  if (url === undefined) throw new StartError(`The database in ${dataDir} has nothing of ${service} yet: start Latchkey once.`);
  return url;
}
