import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Failure } from './failure.mjs';
import { installEnv } from './install-home.mjs';
import { acquireInstallLock } from './install-lock.mjs';
import { isInstalled, readStamp, writeStamp } from './install-stamp.mjs';
import { modulesDir, pinnedNode, root } from './paths.mjs';

const packageManager = 'pnpm@12.21.0';
const timeoutMs = 15 * 60_000;
const progressIntervalMs = 2_000;

/**
 * Installs the dependencies unless they are there already, which takes a few milliseconds to find out.
 *
 * @param {import('./install-stamp.mjs').Scope} scope
 */
export async function ensureInstalled(scope) {
  if (isInstalled(scope)) return;
  createModulesDir();
  const lock = await acquireInstallLock({
    ageMaxMs: timeoutMs + 60_000,
    onWait: () => tell('Waiting for another start that is installing.'),
  });
  try {
    if (isInstalled(scope)) return;
    // A checkout that has run tests keeps what they need.
    const installed = readStamp().scope === 'all' ? 'all' : scope;
    await install(lock, installed);
    if (!existsSync(pinnedNode))
      throw new Failure('The installation left no Node.js in node_modules: remove node_modules and start again.');
    writeStamp(installed);
  } finally {
    lock.release();
  }
}

function createModulesDir() {
  try {
    mkdirSync(modulesDir, { recursive: true });
  } catch (err) {
    throw new Failure(`The dependencies can't be installed, as ${root} can't be written to (${err.code}): check who owns it.`);
  }
}

async function install(lock, scope) {
  const startedAt = performance.now();
  tell(`Installing the dependencies (once, ${scope === 'run' ? 'about 350 MB' : 'about 750 MB with the test tools'}).`);
  const env = { ...installEnv(tell), ...registryPatience };
  const child = spawnPackageManager(env, scope);
  lock.name(child.pid ?? process.pid);
  const forward = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => {
    const handler = () => {
      killTree(child, 'SIGTERM');
      lock.release();
      process.exit(128 + constants.signals[signal]);
    };
    process.on(signal, handler);
    return () => process.off(signal, handler);
  });
  try {
    await waitFor(child);
  } finally {
    for (const remove of forward) remove();
  }
  tell(`Installed in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s.`);
}

/** A network that is not there should be told within seconds, not minutes. */
const registryPatience = {
  npm_config_fetch_retries: '1',
  npm_config_fetch_retry_mintimeout: '1000',
  npm_config_update_notifier: 'false',
};

function spawnPackageManager(env, scope) {
  // npm tells its scripts where it is; the npx beside it needs no PATH.
  const besideNpm = process.env.npm_execpath?.endsWith('npm-cli.js') ? join(dirname(process.env.npm_execpath), 'npx-cli.js') : '';
  const [command, first] = existsSync(besideNpm) ? [process.execPath, [besideNpm]] : ['npx', []];
  const args = [
    '-y',
    packageManager,
    'install',
    '--frozen-lockfile',
    ...(scope === 'run' ? ['--prod'] : []),
    '--reporter=append-only',
    '--config.confirm-modules-purge=false',
    '--config.ignore-scripts=false',
  ];
  return spawn(command, [...first, ...args], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
}

function waitFor(child) {
  const lines = [];
  let shownAt = performance.now();
  const onLine = (line) => {
    lines.push(line);
    if (lines.length > 200) lines.shift();
    if (!line.startsWith('Progress:') || performance.now() - shownAt < progressIntervalMs) return;
    shownAt = performance.now();
    tell(`  ${line.slice('Progress: '.length)}`);
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  return new Promise((resolve, reject) => {
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killTree(child, 'SIGKILL');
    }, timeoutMs);
    const finish = (settle) => {
      clearTimeout(timer);
      settle();
    };
    child.once('error', (err) => {
      finish(() => reject(new Failure(`npx could not be run (${err.message}): install npm, which comes with Node.js.`)));
    });
    child.once('close', (code) => {
      if (code === 0) return finish(resolve);
      finish(() =>
        reject(new Failure(timedOut ? `The installation did not end within ${timeoutMs / 60_000} minutes.` : explain(lines))),
      );
    });
  });
}

/** The end of what the package manager said, and a sentence that names the usual causes. */
function explain(lines) {
  const text = lines.join('\n');
  const shown = lines.filter((line) => line.trim() !== '' && !/^(Progress:|npm notice|npm warn)/.test(line)).slice(-12);
  return `${shown.map((line) => `  ${line}`).join('\n')}\n${causeOf(text)}`;
}

function causeOf(text) {
  if (/ENOSPC/.test(text)) return 'The dependencies could not be installed: the disk is full.';
  if (/EACCES|EPERM|EROFS/.test(text))
    return `The dependencies could not be installed: ${root} or the home folder can't be written to.`;
  if (
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET|network|fetch failed|error sending request/i.test(
      text,
    )
  ) {
    return 'The dependencies could not be installed: the package registry was not reached; check the network and start again.';
  }
  return 'The dependencies could not be installed, for the reason above.';
}

function killTree(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Gone already.
  }
}

function tell(line) {
  process.stderr.write(`${line}\n`);
}
