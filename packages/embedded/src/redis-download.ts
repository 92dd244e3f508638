import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RedisProgram } from './redis-program.ts';

const run = promisify(execFile);

/** What the server needs beyond what every Debian has; only used when apt can't tell. */
const PACKAGES = ['redis-tools', 'libatomic1', 'libjemalloc2', 'liblzf1'];
const DOWNLOAD_TIMEOUT_MS = 180_000;

/** @returns the server that an earlier download left in the folder. */
export async function findDownloadedRedis(cacheDir: string): Promise<RedisProgram | undefined> {
  return describe(join(cacheDir, 'redis'));
}

/**
 * Downloads the distribution's Redis with apt and unpacks it below a folder of ours.
 *
 * Nothing is installed, also not as root: the package would start a service of its own on the usual port, and what a
 * machine has installed is its owner's business. apt works on package lists and a cache of ours for the same reason,
 * so that it also works for an ordinary user and where the system's lists are empty, as in a container's image.
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
    await apt('apt-get', ['update'], draft);
    const debs = join(draft, 'debs');
    await mkdir(debs);
    await apt('apt-get', ['download', ...(await listPackages(apt, draft))], debs);
    const root = join(draft, 'root');
    for (const deb of await readdir(debs)) {
      if (deb.endsWith('.deb')) await run('dpkg-deb', ['-x', join(debs, deb), root]);
    }
    await publish(root, join(cacheDir, 'redis'));
  } catch (err) {
    throw new Error(summarise(err), { cause: err });
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 3 });
  }
  const program = await findDownloadedRedis(cacheDir);
  if (!program) throw new Error('the package holds no server');
  return program;
}

type Apt = (command: string, args: readonly string[], cwd: string) => Promise<string>;

async function prepareApt(dir: string): Promise<Apt> {
  // As root, apt fetches as a user of its own, who must be able to pass through; for root that is switched off.
  await chmod(dir, 0o755);
  await mkdir(join(dir, 'lists', 'partial'), { recursive: true });
  await mkdir(join(dir, 'cache', 'archives', 'partial'), { recursive: true });
  const settings = [
    `Dir::State::lists=${join(dir, 'lists')}`,
    `Dir::Cache=${join(dir, 'cache')}`,
    'APT::Sandbox::User=root',
    'Acquire::Retries=2',
    'Acquire::http::Timeout=20',
    'Acquire::https::Timeout=20',
    'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  return async (command, args, cwd) => {
    const { stdout } = await run(command, [...settings, '-q', ...args], {
      cwd,
      env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
      maxBuffer: 16 * 1024 * 1024,
      timeout: DOWNLOAD_TIMEOUT_MS,
    });
    return stdout;
  };
}

/** The server's packages and those it needs that this system lacks: what installing it would add. */
async function listPackages(apt: Apt, cwd: string): Promise<string[]> {
  const plan = await apt('apt-get', ['--simulate', '--no-install-recommends', 'install', 'redis-server'], cwd).catch(() => '');
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

function summarise(err: unknown): string {
  const { code, stderr, message } = err as { code?: unknown; stderr?: string; message: string };
  if (code === 'ENOENT') return 'there is no apt here';
  const complaint = stderr?.split('\n').find((line) => line.startsWith('E: '));
  return (complaint?.slice(3) ?? message.split('\n')[0] ?? 'unknown reason').replace(/\.$/, '');
}
