import { execFile } from 'node:child_process';
import { chmod, chown, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createPassword, readSecretFile, writeSecretFile } from '../process/secret-file.ts';
import { StartError } from '../process/start-error.ts';
import { sync } from './copy-files.ts';
import { POSTGRES_MAJOR } from './postgres-binaries.ts';
import type { PostgresHome } from './postgres-home.ts';

const DRAFT_PREFIX = 'initdb-';
const INITDB_TIMEOUT_MS = 120_000;

export interface ClusterCredentials {
  superuser: string;
  roles: Record<string, string>;
}

/** @returns the stored passwords, or `undefined` before the first start */
export async function readCredentials(path: string): Promise<ClusterCredentials | undefined> {
  return (await readSecretFile(path)) as ClusterCredentials | undefined;
}

/** Finds or creates the cluster and its password. A new one is renamed once it is complete. */
export async function ensureCluster(
  home: PostgresHome,
  { durable, onProgress }: { durable: boolean; onProgress?: ((line: string) => void) | undefined },
): Promise<ClusterCredentials> {
  await removeDrafts(home.dir);
  const stored = await readCredentials(home.credentialsPath);
  if (await stat(home.clusterDir).catch(() => undefined)) {
    await checkVersion(home.clusterDir);
    if (stored) return stored;
    throw new StartError(
      `The database in ${home.clusterDir} is there but its password file ${home.credentialsPath} is not: restore that file, or remove DATA_DIR to begin anew.`,
    );
  }
  onProgress?.('Creating the database cluster.');
  const credentials = stored ?? { superuser: createPassword(), roles: {} };
  if (!stored) await writeSecretFile(home.credentialsPath, credentials);
  await createCluster(home, credentials.superuser, durable);
  return credentials;
}

async function checkVersion(clusterDir: string): Promise<void> {
  const version = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8').catch(() => 'none')).trim();
  if (version === POSTGRES_MAJOR) return;
  throw new StartError(
    `${clusterDir} holds a database of PostgreSQL version ${version}, but version ${POSTGRES_MAJOR} is installed: upgrade it with pg_upgrade, or point DATA_DIR elsewhere.`,
  );
}

/** An orphaned initdb may still be writing: what can't be removed now is removed next time. */
async function removeDrafts(dir: string): Promise<void> {
  for (const name of (await readdir(dir)).filter((name) => name.startsWith(DRAFT_PREFIX))) {
    await rm(join(dir, name), { recursive: true, force: true, maxRetries: 5 }).catch(() => {});
  }
}

async function createCluster(home: PostgresHome, password: string, durable: boolean): Promise<void> {
  const draft = await mkdtemp(join(home.dir, DRAFT_PREFIX));
  try {
    await chmod(draft, 0o700);
    const passwordPath = join(draft, 'password');
    await writeFile(passwordPath, `${password}\n`, { mode: 0o600 });
    if (home.user) for (const path of [draft, passwordPath]) await chown(path, home.user.uid, home.user.gid);
    const cluster = join(draft, 'data');
    await runInitdb(home, draft, [
      `--pgdata=${cluster}`,
      '--username=postgres',
      `--pwfile=${passwordPath}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // Order by code point, the same on every machine; but upper and lower case of all of Unicode.
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      ...(durable ? [] : ['--no-sync']),
    ]);
    await rename(cluster, home.clusterDir);
    await sync(home.dir);
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function runInitdb({ binaries, dir, user }: PostgresHome, cwd: string, args: readonly string[]): Promise<void> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  try {
    await promisify(execFile)(binaries.initdb, args, { cwd, env, timeout: INITDB_TIMEOUT_MS, ...user });
  } catch (err) {
    const { stdout = '', stderr = '', message } = err as { stdout?: string; stderr?: string; message: string };
    const lines = `${stdout}${stderr}`.trim().split('\n').filter(Boolean);
    const reason = lines.findLast((line) => /error|fatal|could not/i.test(line)) ?? lines.at(-1) ?? message;
    throw new StartError(`The database could not be created in ${dir}: ${reason.trim()}`, { detail: lines, cause: err });
  }
}
