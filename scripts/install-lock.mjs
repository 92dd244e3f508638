import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from './failure.mjs';
import { modulesDir } from './paths.mjs';

const lockPath = join(modulesDir, '.latchkey-installing');
const takeoverPath = `${lockPath}.takeover`;
const takeoverAgeMaxMs = 5_000;
const pollMs = 200;

/**
 * Lets one process at a time install in this checkout. The lock names the installer and the package manager it started,
 * which may go on after the installer was killed; it is stale when neither runs, or when it is older than any installation.
 *
 * @param {{ ageMaxMs: number, onWait: () => void }} options
 */
export async function acquireInstallLock({ ageMaxMs, onWait }) {
  let waiting = false;
  for (const deadline = Date.now() + ageMaxMs; ; ) {
    if (tryCreate())
      return {
        name: (pid) => writeFileSync(lockPath, `${process.pid} ${pid}`),
        release: () => rmSync(lockPath, { force: true }),
      };
    if (isStale(ageMaxMs)) removeStale(ageMaxMs);
    else if (!waiting) {
      waiting = true;
      onWait();
    }
    if (Date.now() > deadline) throw new Failure(`Another installation is taking too long: end it, or remove ${lockPath}.`);
    await delay(pollMs);
  }
}

function tryCreate() {
  try {
    writeFileSync(lockPath, String(process.pid), { flag: 'wx' });
    return true;
  } catch (err) {
    if (err.code === 'EEXIST') return false;
    throw err;
  }
}

function isStale(ageMaxMs) {
  const age = ageOf(lockPath);
  if (age === undefined) return false;
  const pids = readPids();
  // A lock that was just created may not have its content yet.
  if (pids.length === 0) return age > takeoverAgeMaxMs;
  return age > ageMaxMs || !pids.some(isAlive);
}

/** A second lock around the removal keeps two waiting processes from removing each other's fresh lock. */
function removeStale(ageMaxMs) {
  try {
    mkdirSync(takeoverPath);
  } catch {
    if ((ageOf(takeoverPath) ?? 0) > takeoverAgeMaxMs) ignoreErrors(() => rmdirSync(takeoverPath));
    return;
  }
  try {
    if (isStale(ageMaxMs)) ignoreErrors(() => renameSync(lockPath, `${lockPath}.stale`));
  } finally {
    ignoreErrors(() => rmdirSync(takeoverPath));
  }
}

function readPids() {
  try {
    return readFileSync(lockPath, 'utf8').split(' ').map(Number).filter(Boolean);
  } catch {
    return [];
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (err) {
    return err.code === 'EPERM';
  }
}

/** Where nobody reaps orphans, as in many containers, a dead process keeps its pid. */
function isZombie(pid) {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function ageOf(path) {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}

function ignoreErrors(action) {
  try {
    action();
  } catch {
    // Another process did the same at the same time.
  }
}
