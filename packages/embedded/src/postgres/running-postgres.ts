import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readCredentials } from './postgres-cluster.ts';
import { readRelocation } from './postgres-home.ts';
import { isPostgresOf, readPostmasterFile } from './postgres-leftover.ts';
import { readServiceDatabaseUrl, roleUrl } from './service-databases.ts';

/** True if a data folder has a database. Creates nothing. */
export async function hasPostgres(dataDir: string): Promise<boolean> {
  return (await stat(await findClusterDir(dataDir)).catch(() => undefined)) !== undefined;
}

/** Folder of a data folder's database, which may not exist yet. */
export async function findClusterDir(dataDir: string): Promise<string> {
  return join(await findHome(dataDir), 'data');
}

/** The PostgreSQL that any process runs on a data folder; undefined while none is ready. */
export async function findPostgres(dataDir: string) {
  const home = await findHome(dataDir);
  const clusterDir = join(home, 'data');
  const file = await readPostmasterFile(clusterDir);
  if (!file?.ready || !isPostgresOf(file.pid, clusterDir)) return undefined;
  return { port: file.port, clusterDir, credentialsPath: join(home, 'credentials.json') };
}

/** A service's URL there; undefined while none is ready, or where the service has no role yet. */
export async function findServiceDatabase(dataDir: string, service: string): Promise<string | undefined> {
  const running = await findPostgres(dataDir);
  return running && readServiceDatabaseUrl(running, service);
}

/** The superuser's URL of the database that holds the services' schemas. */
export async function readAdminUrl(credentialsPath: string, port: number): Promise<string> {
  const credentials = await readCredentials(credentialsPath);
  if (!credentials) throw new Error(`${credentialsPath} is missing`);
  return roleUrl(port, 'postgres', credentials.superuser);
}

/** The folder of cluster and passwords, as root maybe elsewhere (`preparePostgresHome`). */
async function findHome(dataDir: string): Promise<string> {
  const usualDir = join(dataDir, 'postgres');
  const dir = await realpath(usualDir).catch(() => usualDir);
  return (await readRelocation(dir)) ?? dir;
}
