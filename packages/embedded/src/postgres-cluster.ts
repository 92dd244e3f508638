import { spawn } from 'node:child_process';
import { chmod, chown, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { POSTGRES_MAJOR } from './postgres-binaries.ts';
import type { PostgresHome } from './postgres-home.ts';
import { createPassword, readSecretFile, writeSecretFile } from './secret-file.ts';
import { StartError } from './start-error.ts';

const DRAFT_PREFIX = 'initdb-';

/** The passwords of one cluster, as they stand in its credentials file. */
export interface ClusterCredentials {
  superuser: string;
  /** By role name. */
  roles: Record<string, string>;
}

/** @returns the stored passwords, or `undefined` before the first start. */
export async function readCredentials(path: string): Promise<ClusterCredentials | undefined> {
  return (await readSecretFile(path)) as ClusterCredentials | undefined;
}

/**
 * Makes sure that there is a cluster and that we know its password.
 *
 * A new one is made beside its final place and renamed, so that a cluster is whole or absent however the making
 * ends; what an earlier try left is removed.
 */
export async function ensureCluster(
  home: PostgresHome,
  options: { durable: boolean; onProgress?: ((line: string) => void) | undefined },
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
  options.onProgress?.('Creating the database cluster.');
  const credentials = stored ?? { superuser: createPassword(), roles: {} };
  if (!stored) await writeSecretFile(home.credentialsPath, credentials);
  await createCluster(home, credentials.superuser, options.durable);
  return credentials;
}

async function checkVersion(clusterDir: string): Promise<void> {
  const version = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8').catch(() => 'none')).trim();
  if (version === POSTGRES_MAJOR) return;
  throw new StartError(
    `${clusterDir} holds a database of PostgreSQL version ${version}, but version ${POSTGRES_MAJOR} is installed: upgrade it with pg_upgrade, or point DATA_DIR elsewhere.`,
  );
}

async function removeDrafts(dir: string): Promise<void> {
  for (const entry of await readdir(dir)) {
    if (!entry.startsWith(DRAFT_PREFIX)) continue;
    // An initdb whose parent was killed may still be writing for a moment. What stays now goes at the next start.
    await rm(join(dir, entry), { recursive: true, force: true, maxRetries: 5 }).catch(() => {});
  }
}

async function createCluster(home: PostgresHome, password: string, durable: boolean): Promise<void> {
  const draft = await mkdtemp(join(home.dir, DRAFT_PREFIX));
  try {
    await chmod(draft, 0o700);
    const passwordPath = join(draft, 'password');
    await writeFile(passwordPath, `${password}\n`, { mode: 0o600 });
    if (home.user) {
      await chown(draft, home.user.uid, home.user.gid);
      await chown(passwordPath, home.user.uid, home.user.gid);
    }
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
    if (durable) await syncDir(home.dir);
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 });
  }
}

function runInitdb(home: PostgresHome, cwd: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(home.binaries.initdb, [...args], {
      cwd,
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 120_000,
      ...(home.user ? { uid: home.user.uid, gid: home.user.gid } : {}),
    });
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-8_192);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (err) => reject(new StartError(`initdb could not be run: ${err.message}.`, { cause: err })));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const lines = output.trim().split('\n');
      const reason =
        lines.findLast((line) => /error|fatal|could not/i.test(line)) ?? lines.at(-1) ?? `ended with ${signal ?? code}`;
      reject(new StartError(`The database could not be created in ${home.dir}: ${reason.trim()}`, { detail: lines }));
    });
  });
}

async function syncDir(path: string): Promise<void> {
  const dir = await open(path, 'r');
  try {
    await dir.sync();
  } finally {
    await dir.close();
  }
}
