import { acquireDataDirLock, type DataDirLock } from '@latchkey/embedded/data-dir-lock';
import { startPostgres } from '@latchkey/embedded/postgres';
import { findServiceDatabase, hasPostgres } from '@latchkey/embedded/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/service-databases';
import { StartError } from '@latchkey/embedded/start-error';
import { waitUntil } from '@latchkey/embedded/wait-until';

/** How long a command waits for the database of a Latchkey that is starting or stopping. */
const PATIENCE_MS = 30_000;

/** Which database a command needs, and for what. */
export interface ServiceDatabaseOptions {
  readonly dataDir: string;
  /** Name of the service, its role and its schema. */
  readonly service: string;
  /** What the PostgreSQL is started for: the end of a sentence. */
  readonly purpose: string;
  readonly note: (line: string) => void;
}

/** The database of a data folder, for as long as a command runs. */
export interface ServiceDatabase {
  readonly url: string;
  /** Whether a Latchkey runs on the folder. Otherwise none can until this is closed. */
  readonly running: boolean;
  close(): Promise<void>;
}

/** @throws {StartError} when there is no database in the folder */
export async function requireDatabase(dataDir: string): Promise<void> {
  if (await hasPostgres(dataDir)) return;
  throw new StartError(`There is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as for npm start.`);
}

/**
 * Finds the database of a Latchkey that runs on a data folder, or else starts the folder's own
 * until it is closed.
 *
 * @throws {StartError} when there is none
 */
export async function openServiceDatabase(options: ServiceDatabaseOptions): Promise<ServiceDatabase> {
  const { dataDir, service } = options;
  await requireDatabase(dataDir);
  let rejection: unknown;
  const findOrStart = async () => {
    const lock = await acquireDataDirLock(dataDir).catch((err: unknown) => {
      if (!(err instanceof StartError)) throw err;
      rejection = err;
    });
    if (lock) return start(options, lock);
    const url = await findServiceDatabase(dataDir, service);
    return url === undefined ? undefined : { url, running: true, close: async () => undefined };
  };
  const found = await waitUntil(findOrStart, { timeoutMs: PATIENCE_MS, intervalMs: 200 });
  if (found === undefined) throw rejection;
  return found;
}

/** While the lock of the folder is ours, no Latchkey uses it. */
async function start({ dataDir, service, purpose, note }: ServiceDatabaseOptions, lock: DataDirLock): Promise<ServiceDatabase> {
  const stops = new AsyncDisposableStack();
  const close = () => stops.disposeAsync();
  stops.defer(() => lock.release());
  try {
    note(`Latchkey does not run: starting its PostgreSQL for ${purpose}.`);
    const postgres = await startPostgres({ dataDir, onProgress: note });
    stops.defer(() => postgres.stop());
    const url = await readServiceDatabaseUrl(postgres, service);
    if (url !== undefined) return { url, running: false, close };
    throw new StartError(`The database in ${dataDir} has nothing of ${service} yet: start Latchkey once.`);
  } catch (err) {
    await close();
    throw err;
  }
}
