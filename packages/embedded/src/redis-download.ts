import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { explainApt, prepareApt } from './apt.ts';

const run = promisify(execFile);

/** A program that runs as a Redis server. */
export interface RedisProgram {
  readonly command: string;
  /** The name it must be called by, where one program is several. */
  readonly argv0?: string;
  /** Where libraries are that the system does not have. */
  readonly libraryPath?: string;
}

/** @returns the server that an earlier download left in the folder */
export async function findDownloadedRedis(cacheDir: string): Promise<RedisProgram | undefined> {
  const root = join(cacheDir, 'redis');
  const parents = [join(root, 'usr', 'lib'), join(root, 'lib')];
  const libraries = parents.map(async (parent) =>
    (await readdir(parent).catch(() => [])).filter((name) => name.includes('-linux-gnu')).map((name) => join(parent, name)),
  );
  const libraryPath = (await Promise.all(libraries)).flat().join(':');
  // `redis-server` is a link to this one, which is in the package `redis-tools`.
  const tool = join(root, 'usr', 'bin', 'redis-check-rdb');
  const server = join(root, 'usr', 'bin', 'redis-server');
  if (existsSync(server)) return { command: server, libraryPath };
  return existsSync(tool) ? { command: tool, argv0: 'redis-server', libraryPath } : undefined;
}

/**
 * Downloads the distribution's Redis with apt and unpacks it below a folder of ours. Nothing is
 * installed: the package would start a service on the usual port.
 *
 * @throws with the reason in a few words
 */
export async function downloadRedis(cacheDir: string, onProgress?: (line: string) => void): Promise<RedisProgram> {
  if (process.platform !== 'linux') throw new Error('downloading it needs apt');
  await mkdir(cacheDir, { recursive: true });
  const draft = await mkdtemp(join(cacheDir, 'redis-download-'));
  try {
    const apt = await prepareApt(draft);
    onProgress?.("Downloading the distribution's Redis, as there is none here.");
    const update = await apt(['update'], draft);
    const plan = await apt(['--simulate', '--no-install-recommends', 'install', 'redis-server'], draft).catch((err: unknown) => {
      // An update that reached nothing is only a warning to apt.
      throw /Failed to fetch/.test(update.stderr) ? new Error('the package archive was not reached') : err;
    });
    // What installing it would add: packages that the system lacks.
    const packages = new Set([...plan.stdout.matchAll(/^Inst (\S+) /gm)].map(([, name = '']) => name));
    const debs = join(draft, 'debs');
    await mkdir(debs);
    await apt(['download', ...packages.add('redis-tools')], debs);
    const root = join(draft, 'root');
    for (const deb of await readdir(debs)) await run('dpkg-deb', ['-x', join(debs, deb), root]);
    await publish(root, join(cacheDir, 'redis'));
  } catch (err) {
    throw new Error(explainApt(err), { cause: err });
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 3 });
  }
  const program = await findDownloadedRedis(cacheDir);
  if (!program) throw new Error('the package holds no server');
  return program;
}

/** Another process may publish its own at the same time. */
async function publish(root: string, target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  await rename(root, target).catch((err: unknown) => {
    if (!existsSync(target)) throw err;
  });
}
