import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Apt, explainApt, prepareApt } from './apt.ts';
import type { RedisProgram } from './redis-program.ts';

const run = promisify(execFile);

/** What the server needs beyond what every Debian has; only used when apt can't tell. */
const PACKAGES = ['redis-tools', 'libatomic1', 'libjemalloc2', 'liblzf1'];

/** @returns the server that an earlier download left in the folder. */
export async function findDownloadedRedis(cacheDir: string): Promise<RedisProgram | undefined> {
  return describe(join(cacheDir, 'redis'));
}

/**
 * Downloads the distribution's Redis with apt and unpacks it below a folder of ours.
 *
 * Nothing is installed, also not as root: the package would start a service of its own on the usual port, and what a
 * machine has installed is its owner's business.
 */
export async function downloadRedis({
  cacheDir,
  onProgress,
}: {
  cacheDir: string;
  onProgress?: ((line: string) => void) | undefined;
}): Promise<RedisProgram> {
  if (process.platform !== 'linux') throw new Error('downloading it needs apt');
  await mkdir(cacheDir, { recursive: true });
  const draft = await mkdtemp(join(cacheDir, 'redis-download-'));
  try {
    const apt = await prepareApt(draft);
    onProgress?.("Downloading the distribution's Redis, as there is none here.");
    const update = await apt(['update'], draft);
    const debs = join(draft, 'debs');
    await mkdir(debs);
    await apt(['download', ...(await listPackages(apt, draft))], debs).catch((err: unknown) => {
      // An update that reached nothing is only a warning to apt, and the reason for what follows.
      throw /Failed to fetch/.test(update.stderr) ? new Error('the package archive was not reached') : err;
    });
    const root = join(draft, 'root');
    for (const deb of await readdir(debs)) {
      if (deb.endsWith('.deb')) await run('dpkg-deb', ['-x', join(debs, deb), root]);
    }
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

/** The server's packages and those it needs that this system lacks: what installing it would add. */
async function listPackages(apt: Apt, cwd: string): Promise<string[]> {
  const simulation = ['--simulate', '--no-install-recommends', 'install', 'redis-server'];
  const plan = await apt(simulation, cwd).then(
    ({ stdout }) => stdout,
    () => '',
  );
  const added = [...plan.matchAll(/^Inst (\S+) /gm)].map((match) => match[1] ?? '');
  return added.length === 0 ? PACKAGES : [...new Set([...added, 'redis-tools'])];
}

async function publish(root: string, target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  try {
    await rename(root, target);
  } catch (err) {
    // Another process that downloaded it at the same time was faster.
    if (!(await describe(target))) throw err;
  }
}

async function describe(root: string): Promise<RedisProgram | undefined> {
  const tool = join(root, 'usr', 'bin', 'redis-check-rdb');
  const server = join(root, 'usr', 'bin', 'redis-server');
  const libraryPath = (await libraryDirs(root)).join(':');
  // stat() follows the link that `redis-server` is, which has no target where only the server's package was fetched.
  if (await stat(server).catch(() => undefined)) return { command: server, libraryPath };
  if (await stat(tool).catch(() => undefined)) return { command: tool, argv0: 'redis-server', libraryPath };
  return undefined;
}

async function libraryDirs(root: string): Promise<string[]> {
  const dirs: string[] = [];
  for (const parent of [join(root, 'usr', 'lib'), join(root, 'lib')]) {
    const names = await readdir(parent).catch(() => []);
    dirs.push(
      ...names.filter((name) => name.endsWith('-linux-gnu') || name.startsWith('arm-linux')).map((name) => join(parent, name)),
    );
  }
  return dirs;
}
