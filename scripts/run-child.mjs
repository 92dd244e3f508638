import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { modulesDir, pinnedNode, root } from './checkout.mjs';

const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const parentPollMs = 250;

/** The environment in which tools find the pinned Node.js and cache what they compile. */
export function childEnv() {
  return {
    ...process.env,
    PATH: `${modulesDir}/node/bin:${process.env.PATH ?? ''}`,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? `${modulesDir}/.cache/node-compile`,
    BUF_CACHE_DIR: process.env.BUF_CACHE_DIR ?? `${modulesDir}/.cache/buf`,
  };
}

export function toolPath(name) {
  return `${modulesDir}/.bin/${name}`;
}

export function runNode(args, options) {
  return run(pinnedNode, args, options);
}

export function runTool(name, args, options) {
  return run(toolPath(name), args, options);
}

/**
 * Runs a program with our terminal and our signals.
 *
 * @param options some of `spawn`; `leavesCtrlC`: a Ctrl-C at the terminal, which the program gets
 *   from there, is not forwarded to it; `onStart` gets the pid
 * @returns {Promise<number>} the exit code
 */
export function run(command, args, options = {}) {
  const { cwd = root, env = childEnv(), stdio = 'inherit', leavesCtrlC = false, onStart } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio });
    const forward = (signal) => {
      if (signal === 'SIGINT' && leavesCtrlC && process.stdin.isTTY) return;
      child.kill(signal);
    };
    for (const signal of forwardedSignals) process.on(signal, forward);
    const poll = watchNpm(() => child.kill('SIGTERM'));
    const finish = () => {
      clearInterval(poll);
      for (const signal of forwardedSignals) process.off(signal, forward);
    };
    child.once('spawn', () => onStart?.(child.pid));
    child.once('error', (err) => {
      finish();
      reject(err);
    });
    child.once('exit', (code, signal) => {
      finish();
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/** npm forwards no signal when it is killed itself: a change of our parent stands for one. */
function watchNpm(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const parent = process.ppid;
  const poll = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(poll);
    onGone();
  }, parentPollMs);
  return poll.unref();
}
