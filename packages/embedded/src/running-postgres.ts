import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isPostgresOf, readPostmasterFile } from './postgres-leftover.ts';
import { readSecretFile } from './secret-file.ts';
import { readServiceDatabaseUrl } from './service-databases.ts';

/** Whether there is a database in a data folder. Nothing is made or changed. */
export async function hasPostgres(dataDir: string): Promise<boolean> {
  return (await stat(await findClusterDir(dataDir)).catch(() => undefined)) !== undefined;
}

/** Where the database of a data folder is, or would be made. */
export async function findClusterDir(dataDir: string): Promise<string> {
  return join((await findHome(dataDir)) ?? join(dataDir, 'postgres'), 'data');
}

/**
 * The URL of a service in the PostgreSQL that another process runs on a data folder.
 *
 * @returns undefined while none is ready there, or where it has no database of that service
 */
export async function findServiceDatabase(dataDir: string, service: string): Promise<string | undefined> {
  const home = await findHome(dataDir);
  if (home === undefined) return undefined;
  const clusterDir = join(home, 'data');
  const file = await readPostmasterFile(clusterDir);
  if (!file?.ready || !isPostgresOf(file.pid, clusterDir)) return undefined;
  return readServiceDatabaseUrl({ credentialsPath: join(home, 'credentials.json'), port: file.port }, service);
}

/** The folder of the cluster and its passwords, which as root may lie elsewhere (`preparePostgresHome`). */
async function findHome(dataDir: string): Promise<string | undefined> {
  const dir = await realpath(join(dataDir, 'postgres')).catch(() => undefined);
  if (dir === undefined) return undefined;
  const relocated = (await readSecretFile(join(dir, 'relocated.json'))) as { dir?: string } | undefined;
  return relocated?.dir ?? dir;
}
