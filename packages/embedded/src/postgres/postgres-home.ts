import { randomBytes } from 'node:crypto';
import { chmod, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readSecretFile, writeSecretFile } from '../process/secret-file.ts';
import { StartError } from '../process/start-error.ts';
import { copyBinaries, locatePostgres, type PostgresBinaries } from './postgres-binaries.ts';
import { chooseUnprivilegedUser, isRoot, type SystemUser, succeedsAs } from './system-user.ts';

/** Holds data and binaries as root, when the server's user can't reach the usual folders. */
export const SHARED_ROOT = '/var/lib/latchkey';

export type PostgresHome = ReturnType<typeof describeHome>;

/**
 * Chooses the folders of PostgreSQL for a data folder.
 *
 * An ordinary user has everything in `<dataDir>/postgres`. As root the server runs as another user,
 * who often can't enter the folder of the checkout (`/root` has mode 700): then data and binaries
 * go below `sharedRoot`, and `<dataDir>/postgres/relocated.json` names the folder.
 *
 * @param dataDir a real path
 */
export async function preparePostgresHome(
  dataDir: string,
  sharedRoot: string,
  onProgress?: (line: string) => void,
): Promise<PostgresHome> {
  const binaries = await locatePostgres();
  await mkdir(join(dataDir, 'postgres'), { recursive: true, mode: 0o711 });
  const usualDir = await realpath(join(dataDir, 'postgres'));
  if (!isRoot()) return describeHome(binaries, undefined, usualDir);
  const relocatedDir = await readRelocation(usualDir);
  if (relocatedDir !== undefined) await claim(relocatedDir, usualDir);
  const user = await chooseUnprivilegedUser(join(relocatedDir ?? usualDir, 'data'));
  const canRun = succeedsAs(user, binaries.postgres, ['--version']);
  const reachable = canRun ? binaries : await copyBinaries(binaries, sharedRoot);
  if (relocatedDir !== undefined) return describeHome(reachable, user, relocatedDir);
  if (succeedsAs(user, '/bin/sh', ['-c', 'cd "$1"', 'sh', usualDir])) return describeHome(reachable, user, usualDir);
  if (await stat(join(usualDir, 'data')).catch(() => undefined)) {
    throw new StartError(
      `The user that owns ${join(usualDir, 'data')} can no longer reach it: make the folders above it passable (chmod o+x), or move DATA_DIR.`,
    );
  }
  const newDir = await relocate(usualDir, sharedRoot);
  onProgress?.(`PostgreSQL runs as another user, who can't enter ${dataDir}: its data goes to ${newDir}.`);
  return describeHome(reachable, user, newDir);
}

/** @param dir holds the cluster and, readable by us only, its passwords */
function describeHome(binaries: PostgresBinaries, user: SystemUser | undefined, dir: string) {
  return { binaries, user, dir, clusterDir: join(dir, 'data'), credentialsPath: join(dir, 'credentials.json') };
}

export async function readRelocation(usualDir: string): Promise<string | undefined> {
  return readDir(join(usualDir, 'relocated.json'));
}

async function readDir(path: string): Promise<string | undefined> {
  return ((await readSecretFile(path)) as { dir?: string } | undefined)?.dir;
}

async function relocate(usualDir: string, sharedRoot: string): Promise<string> {
  const target = join(sharedRoot, randomBytes(8).toString('hex'));
  await mkdir(target, { recursive: true });
  await chmod(sharedRoot, 0o755);
  await chmod(target, 0o711);
  await writeSecretFile(join(target, 'owner.json'), { dir: usualDir });
  await writeSecretFile(join(usualDir, 'relocated.json'), { dir: target });
  return target;
}

/** A relocated database follows its data folder, but does not serve a copy of that as well. */
async function claim(target: string, usualDir: string): Promise<void> {
  if (!(await stat(target).catch(() => undefined))) {
    throw new StartError(
      `${join(usualDir, 'relocated.json')} names ${target} as the folder of the database, but it is gone: restore it, or remove DATA_DIR to begin anew.`,
    );
  }
  const owner = await readDir(join(target, 'owner.json'));
  if (owner === usualDir) return;
  if (owner !== undefined && (await readRelocation(owner)) === target) {
    throw new StartError(
      `${dirname(usualDir)} is a copy of ${dirname(owner)}, and the database of both is ${target}: remove ${usualDir} to begin with an empty one.`,
    );
  }
  await writeSecretFile(join(target, 'owner.json'), { dir: usualDir });
}
