import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { StartError } from '../process/start-error.ts';
import { explainApt, prepareApt } from './apt.ts';

export interface RedisProgram {
  readonly command: string;
  /** The name it must be called by, where one program is several. */
  readonly argv0?: string;
  /** Folders of libraries that the system lacks. */
  readonly libraryPath?: string;
}

/** The oldest version that the queues and limits work with. */
const VERSION_MIN = 6.2;
/** On Debian, `redis-check-rdb` of the package `redis-tools` is the server too, by another name. */
const ON_PATH: readonly RedisProgram[] = [
  { command: 'redis-server' },
  { command: 'valkey-server' },
  { command: 'redis-check-rdb', argv0: 'redis-server' },
];

/**
 * Finds a Redis or Valkey server: on the PATH, else a downloaded one, else downloads one.
 *
 * @param cacheDir where a downloaded server is stored
 * @throws {StartError} when none is found and none can be downloaded
 */
export async function findRedis(cacheDir: string, onProgress?: (line: string) => void): Promise<RedisProgram> {
  const downloaded = await findDownloaded(cacheDir);
  const found = [...ON_PATH, ...(downloaded ? [downloaded] : [])].find(isUsable);
  if (found) return found;
  try {
    const fresh = await download(cacheDir, onProgress);
    if (fresh && isUsable(fresh)) return fresh;
    throw new Error('the downloaded server does not run');
  } catch (cause) {
    const why = `There is no Redis on this machine and none could be downloaded (${(cause as Error).message})`;
    throw new StartError(`${why}: install redis-server or valkey-server as the README says, or set REDIS_URL.`, { cause });
  }
}

export function redisEnv({ libraryPath }: RedisProgram): NodeJS.ProcessEnv {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  return libraryPath === undefined ? env : { ...env, LD_LIBRARY_PATH: libraryPath };
}

/** True if it runs here and is new enough. */
function isUsable(program: RedisProgram): boolean {
  const { status, stdout } = spawnSync(program.command, ['--version'], {
    encoding: 'utf8',
    env: redisEnv(program),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 10_000,
    ...(program.argv0 !== undefined && { argv0: program.argv0 }),
  });
  const [, version] = /^(?:Redis|Valkey) server v=(\d+\.\d)/.exec(stdout ?? '') ?? [];
  return status === 0 && Number(version) >= VERSION_MIN;
}

async function findDownloaded(cacheDir: string): Promise<RedisProgram | undefined> {
  const root = join(cacheDir, 'redis');
  const listLibraries = async (parent: string) =>
    (await readdir(parent).catch(() => [])).filter((name) => name.includes('-linux-gnu')).map((name) => join(parent, name));
  const libraries = await Promise.all([join(root, 'usr', 'lib'), join(root, 'lib')].map(listLibraries));
  const libraryPath = libraries.flat().join(':');
  const server = join(root, 'usr', 'bin', 'redis-server');
  if (existsSync(server)) return { command: server, libraryPath };
  const tool = join(root, 'usr', 'bin', 'redis-check-rdb');
  return existsSync(tool) ? { command: tool, argv0: 'redis-server', libraryPath } : undefined;
}

/**
 * Downloads the distribution's Redis with apt and unpacks it. Nothing is installed: the package
 * would start a service on the usual port.
 *
 * @throws with the reason in a few words
 */
async function download(cacheDir: string, onProgress?: (line: string) => void): Promise<RedisProgram | undefined> {
  if (process.platform !== 'linux') throw new Error('downloading it needs apt');
  await mkdir(cacheDir, { recursive: true });
  const draft = await mkdtemp(join(cacheDir, 'redis-download-'));
  try {
    const apt = await prepareApt(draft);
    onProgress?.("No Redis found: downloading the distribution's.");
    const update = await apt(['update'], draft);
    const plan = await apt(['--simulate', '--no-install-recommends', 'install', 'redis-server'], draft).catch((err: unknown) => {
      // An update that reached nothing is only a warning to apt.
      throw /Failed to fetch/.test(update.stderr) ? new Error('the package archive was not reached') : err;
    });
    // The packages that an installation would add, as the system lacks them.
    const packages = new Set([...plan.stdout.matchAll(/^Inst (\S+) /gm)].map(([, name = '']) => name));
    const debs = join(draft, 'debs');
    await mkdir(debs);
    await apt(['download', ...packages.add('redis-tools')], debs);
    const [unpacked, target] = [join(draft, 'root'), join(cacheDir, 'redis')];
    for (const deb of await readdir(debs)) await promisify(execFile)('dpkg-deb', ['-x', join(debs, deb), unpacked]);
    await rm(target, { recursive: true, force: true });
    await rename(unpacked, target).catch((err: unknown) => {
      // Another process may have published its download.
      if (!existsSync(target)) throw err;
    });
  } catch (err) {
    throw new Error(explainApt(err), { cause: err });
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 3 });
  }
  return findDownloaded(cacheDir);
}
