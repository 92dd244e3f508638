import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { explainApt, prepareApt } from '@latchkey/embedded/redis/apt';

const run = promisify(execFile);

/** Debian's and Ubuntu's package of OpenStack Swift, a download of 5 to 10 MB. */
const PACKAGE = 'python3-swift';
const COMMAND_TIMEOUT_MS = 30_000;

/** Finds Swift, or downloads and unpacks it, and installs nothing. Throws without apt. */
export async function findSwift(cacheDir: string): Promise<{ python: string; env: NodeJS.ProcessEnv }> {
  const root = join(cacheDir, 'swift');
  if (!(await isUsable(root))) await download(cacheDir, root);
  return describe(root);
}

async function download(cacheDir: string, root: string): Promise<void> {
  if (process.platform !== 'linux') throw new Error('downloading Swift needs apt');
  await mkdir(cacheDir, { recursive: true });
  const draft = await mkdtemp(join(cacheDir, 'swift-download-'));
  try {
    const apt = await prepareApt(draft, COMMAND_TIMEOUT_MS);
    await apt(['update'], draft);
    const { stdout } = await apt(['--simulate', '--no-install-recommends', 'install', PACKAGE], draft);
    const packages = [...stdout.matchAll(/^Inst (\S+) /gm)].map((match) => match[1] ?? '');
    const debs = join(draft, 'debs');
    await mkdir(debs);
    if (packages.length > 0) await apt(['download', ...packages], debs);
    const unpacked = join(draft, 'root');
    await mkdir(unpacked);
    for (const deb of await readdir(debs)) await run('dpkg-deb', ['-x', join(debs, deb), unpacked]);
    if (!(await isUsable(unpacked))) throw new Error('what was downloaded does not run');
    await publish(unpacked, root);
  } catch (err) {
    throw new Error(explainApt(err), { cause: err });
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function publish(unpacked: string, root: string): Promise<void> {
  await rm(root, { recursive: true, force: true });
  await rename(unpacked, root).catch(async (err: unknown) => {
    // Another process has downloaded it meanwhile.
    if (!(await isUsable(root))) throw err;
  });
}

async function isUsable(root: string): Promise<boolean> {
  const { python, env } = await describe(root);
  const imports = 'import swift.obj.mem_server, swift.common.middleware.s3api.s3api';
  return run(python, ['-c', imports], { env, timeout: COMMAND_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

/** The distribution's Python, for which the packages' modules are compiled. */
async function describe(root: string): Promise<{ python: string; env: NodeJS.ProcessEnv }> {
  const own = join(root, 'usr', 'bin', 'python3');
  const python = (await stat(own).catch(() => undefined)) ? own : '/usr/bin/python3';
  const libraries = await readdir(join(root, 'usr', 'lib')).catch(() => []);
  const libraryPath = libraries.filter((name) => name.includes('-linux-gnu')).map((name) => join(root, 'usr', 'lib', name));
  return {
    python,
    env: {
      PATH: '/usr/bin:/bin',
      LC_ALL: 'C.UTF-8',
      PYTHONPATH: join(root, 'usr', 'lib', 'python3', 'dist-packages'),
      LD_LIBRARY_PATH: libraryPath.join(':'),
    },
  };
}
