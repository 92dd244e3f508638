import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { copyBinaries, locatePostgres, type PostgresBinaries } from './postgres-binaries.ts';
import { readSecretFile, writeSecretFile } from './secret-file.ts';
import { StartError } from './start-error.ts';
import { chooseUnprivilegedUser, isRoot, type SystemUser, succeedsAs } from './system-user.ts';

/** Where data and binaries go as root, when the server's user can't reach them at their usual place. */
export const SHARED_ROOT = '/var/lib/latchkey';

/** Everything that is settled before PostgreSQL runs: who, which programs, and which folders. */
export interface PostgresHome {
  readonly binaries: PostgresBinaries;
  readonly user: SystemUser | undefined;
  /** Holds the cluster and, readable by us only, its passwords. */
  readonly dir: string;
  readonly clusterDir: string;
  readonly credentialsPath: string;
}

export interface PrepareHomeOptions {
  /** The real path of the data folder. */
  dataDir: string;
  /** Where data and binaries go that the server's user can't reach at their usual place. */
  sharedRoot: string;
  onProgress?: ((line: string) => void) | undefined;
}

/**
 * Settles where PostgreSQL lives for a data folder.
 *
 * An ordinary user has everything in `<dataDir>/postgres`. As root the server runs as somebody else, who often can't
 * pass through the folder of the checkout (`/root` has mode 700): then data and binaries move below `sharedRoot`,
 * and `<dataDir>/postgres/relocated.json` keeps the place, so that the data folder may itself be moved.
 */
export async function preparePostgresHome({ dataDir, sharedRoot, onProgress }: PrepareHomeOptions): Promise<PostgresHome> {
  const binaries = await locatePostgres();
  const usualDir = join(dataDir, 'postgres');
  await mkdir(usualDir, { recursive: true, mode: 0o711 });
  const dir = await realpath(usualDir);
  if (!isRoot()) return describeHome({ binaries, user: undefined, dir });

  const relocated = await readRelocation(dir);
  const user = await chooseUnprivilegedUser(join(relocated ?? dir, 'data'));
  const reachableBinaries = succeedsAs(user, binaries.postgres, ['--version'])
    ? binaries
    : await copyBinaries(binaries, join(sharedRoot, `bin-${await binariesId(binaries)}`));
  if (relocated) return describeHome({ binaries: reachableBinaries, user, dir: relocated });
  if (succeedsAs(user, '/bin/sh', ['-c', 'cd "$1"', 'sh', dir])) return describeHome({ binaries: reachableBinaries, user, dir });
  if (await stat(join(dir, 'data')).catch(() => undefined)) {
    throw new StartError(
      `The user that owns ${join(dir, 'data')} can no longer reach it: make the folders above it passable (chmod o+x), or move DATA_DIR.`,
    );
  }
  const newDir = await relocate(dir, sharedRoot);
  onProgress?.(`PostgreSQL runs as another user, who can't enter ${dataDir}: its data goes to ${newDir}.`);
  return describeHome({ binaries: reachableBinaries, user, dir: newDir });
}

function describeHome(home: Pick<PostgresHome, 'binaries' | 'user' | 'dir'>): PostgresHome {
  return { ...home, clusterDir: join(home.dir, 'data'), credentialsPath: join(home.dir, 'credentials.json') };
}

async function readRelocation(dir: string): Promise<string | undefined> {
  const document = (await readSecretFile(join(dir, 'relocated.json'))) as { dir?: string } | undefined;
  if (document?.dir === undefined) return undefined;
  if (await stat(document.dir).catch(() => undefined)) {
    await claim(document.dir, dir);
    return document.dir;
  }
  throw new StartError(
    `${join(dir, 'relocated.json')} names ${document.dir} as the place of the database, but that folder is gone: restore it, or remove DATA_DIR to begin anew.`,
  );
}

async function relocate(dir: string, sharedRoot: string): Promise<string> {
  const target = join(sharedRoot, randomBytes(8).toString('hex'));
  await mkdir(target, { recursive: true, mode: 0o711 });
  await chmod(sharedRoot, 0o755);
  await chmod(target, 0o711);
  await writeSecretFile(join(target, 'owner.json'), { dir });
  await writeSecretFile(join(dir, 'relocated.json'), { dir: target });
  return target;
}

/** A relocated database follows its data folder when that is moved, but does not serve a copy of the folder too. */
async function claim(target: string, dir: string): Promise<void> {
  const path = join(target, 'owner.json');
  const owner = ((await readSecretFile(path)) as { dir?: string } | undefined)?.dir;
  if (owner === dir) return;
  const ownersTarget = owner && ((await readSecretFile(join(owner, 'relocated.json'))) as { dir?: string } | undefined)?.dir;
  if (ownersTarget === target) {
    throw new StartError(
      `${dirname(dir)} is a copy of ${dirname(owner ?? '')}, and the database of both is ${target}: remove ${dir} to begin with an empty one.`,
    );
  }
  await writeSecretFile(path, { dir });
}

/** Tells copies for different platforms and of different versions apart. */
async function binariesId(binaries: PostgresBinaries): Promise<string> {
  const packageDir = dirname(binaries.root);
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string };
  return `${basename(packageDir)}-${version}`;
}
