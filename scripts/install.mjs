import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Failure, modulesDir, pinnedNode, root } from './checkout.mjs';
import { isBuilt } from './dashboard-sources.mjs';
import { runPackageManager } from './package-manager.mjs';
import { run } from './run-child.mjs';

const stampPath = `${modulesDir}/.latchkey-installed`;
const lockPath = `${modulesDir}/.latchkey-installing`;
const lockAgeMaxMs = 60 * 60_000;
const lockPollMs = 200;

/** @param {'run' | 'all'} scope `run` leaves out what only tests, checks and benchmarks need */
export async function ensureInstalled(scope) {
  if (isInstalled(scope) && hasDashboard()) return;
  try {
    mkdirSync(modulesDir, { recursive: true });
  } catch (err) {
    throw new Failure(`The dependencies can't be installed: ${root} can't be written to (${err.code}). Check who owns it.`);
  }
  await acquireLock();
  try {
    if (!isInstalled(scope)) {
      // Test tools that are installed stay.
      const installed = readStamp().scope === 'all' ? 'all' : scope;
      await install(installed);
      writeFileSync(stampPath, `${installed} ${currentHash()}`);
    }
    if (!hasDashboard()) await buildDashboard();
  } finally {
    rmSync(lockPath, { force: true });
  }
}

async function install(scope) {
  const startedAt = performance.now();
  report(`Installing the dependencies (once, ${scope === 'run' ? 'about 350 MB' : 'about 750 MB with the test tools'}).`);
  const options = ['--frozen-lockfile', '--config.confirm-modules-purge=false', '--config.ignore-scripts=false'];
  const args = ['install', ...options, ...(scope === 'run' ? ['--prod'] : [])];
  // The package manager may outlive this process, so the lock names its pid.
  const onStart = (pid) => writeFileSync(lockPath, String(pid));
  const code = await runPackageManager(args, { env: installEnv(), stdio: ['ignore', 2, 2], onStart });
  if (code !== 0) throw new Failure('The dependencies could not be installed, for the reason above. Start again.');
  if (!existsSync(pinnedNode)) {
    throw new Failure('The installation left no Node.js in node_modules: remove node_modules and start again.');
  }
  report(`Installed in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s.`);
}

const hasDashboard = () => process.env.DASHBOARD === 'off' || isBuilt();

async function buildDashboard() {
  const code = await run(pinnedNode, [`${root}packages/dashboard/scripts/build.mjs`], { stdio: ['ignore', 2, 2] });
  if (code !== 0) throw new Failure('The dashboard could not be built, for the reason above. DASHBOARD=off starts without it.');
}

function installEnv() {
  // Without a network, the default of npm tries for minutes.
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, npm_config_fetch_retries: '1', npm_config_fetch_retry_mintimeout: '1000' };
  try {
    accessSync(env.HOME ?? '', constants.W_OK | constants.X_OK);
  } catch {
    // npm and pnpm cache in the home folder, which containers often lack or have read-only.
    env.HOME = `${modulesDir}/.cache/home`;
    mkdirSync(env.HOME, { recursive: true });
    delete env.npm_config_cache;
  }
  return env;
}

function isInstalled(scope) {
  const stamp = readStamp();
  return existsSync(pinnedNode) && stamp.hash === currentHash() && (stamp.scope === 'all' || scope === 'run');
}

function readStamp() {
  const [scope, hash] = existsSync(stampPath) ? readFileSync(stampPath, 'utf8').split(' ') : [];
  return { scope, hash };
}

/** The lockfile names the dependencies of every package. */
function currentHash() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  for (const path of ['pnpm-lock.yaml', 'pnpm-workspace.yaml']) hash.update(readFileSync(root + path));
  return hash.digest('hex');
}

/** Waits until no other process installs in this checkout. */
async function acquireLock() {
  for (let isReported = false; ; isReported = true) {
    try {
      return writeFileSync(lockPath, String(process.pid), { flag: 'wx' });
    } catch (err) {
      if (err.code !== 'EEXIST') throw err;
    }
    if (isLockStale()) rmSync(lockPath, { force: true });
    else if (!isReported) report('Waiting for another start that is installing.');
    await delay(lockPollMs);
  }
}

function isLockStale() {
  try {
    const pid = Number(readFileSync(lockPath, 'utf8'));
    if (Date.now() - statSync(lockPath).mtimeMs > lockAgeMaxMs) return true;
    process.kill(pid, 0);
    // In containers without an init process, a dead process remains as a zombie.
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (err) {
    return err.code === 'ESRCH';
  }
}

function report(line) {
  process.stderr.write(`${line}\n`);
}
