import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { modulesDir, pinnedNode, root } from './paths.mjs';

const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const parentCheckMs = 250;

/** The environment in which tools find the pinned Node.js, and keep what they compiled. */
export function childEnv() {
  return {
    ...process.env,
    PATH: `${modulesDir}/node/bin:${process.env.PATH ?? ''}`,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? `${modulesDir}/.cache/node-compile`,
    BUF_CACHE_DIR: process.env.BUF_CACHE_DIR ?? `${modulesDir}/.cache/buf`,
  };
}

/** The command line of a development tool. */
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
 * Runs a program in our place: with our terminal, our signals, and its exit code for ours.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {object} options
 * @param {string} [options.cwd]
 * @param {boolean} [options.interruptedByTerminal] whether Ctrl-C at a terminal is left to the terminal
 * @param {boolean} [options.endsWithUs] whether the program is told, by the end of a channel, when we are killed
 * @returns {Promise<number>}
 */
function run(command, args, { cwd = root, interruptedByTerminal = false, endsWithUs = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: childEnv(),
      stdio: ['inherit', 'inherit', 'inherit', ...(endsWithUs ? ['ipc'] : [])],
    });
    const handlers = forwardedSignals.map((signal) => {
      const handler = () => {
        if (signal === 'SIGINT' && interruptedByTerminal && process.stdin.isTTY) return;
        child.kill(signal);
      };
      process.on(signal, handler);
      return () => process.off(signal, handler);
    });
    const unwatch = watchNpm(() => child.kill('SIGTERM'));
    const finish = (settle) => {
      unwatch();
      for (const remove of handlers) remove();
      settle();
    };
    child.once('error', (err) => finish(() => reject(err)));
    child.once('exit', (code, signal) => finish(() => resolve(code ?? 128 + (constants.signals[signal] ?? 0))));
  });
}

/**
 * npm runs its scripts in a shell that, when it is ended by a signal, passes that on to nobody. So the end of the shell, or
 * of npm itself, stands for the signal.
 *
 * @param {() => void} onGone
 * @returns {() => void} stops watching
 */
function watchNpm(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return () => {};
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, parentCheckMs);
  timer.unref();
  return () => clearInterval(timer);
}
