import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { Failure, modulesDir, root } from './checkout.mjs';
import { checks, clientGenerator, runChecks } from './checks.mjs';
import { ensureInstalled } from './install.mjs';
import { childEnv, run, runNode, runTool } from './run-child.mjs';

/** When we are killed, the channel closes, and the program ends. */
const STDIO = ['inherit', 'inherit', 'inherit', 'ipc'];
const TEST_OPTIONS = ['project=', 'reporter=', 'bail=', 'watch'];

/**
 * Tasks by name. `run` takes the arguments and gives the exit code.
 *
 * `usage` is the help of a task that prints none itself. `options`, with `=` where they take a
 * value, are those that npm drops unless `--` precedes them.
 */
const tasks = {
  start: { run: command('launcher/src/main'), options: ['deployed'] },
  dev: {
    run: dev,
    usage: `npm run dev

Runs Latchkey, and again after each change of a file that it loads, and the dashboard with reload at
http://localhost:5173. Settings are those of npm start.`,
  },
  test: {
    run: test,
    options: TEST_OPTIONS,
    usage: `npm test [-- <file or folder>... [--watch] [options of vitest]]

Without arguments it runs all checks and all tests; with them, these tests and no check. With --watch it runs them
again after each change.`,
  },
  'test:all': {
    run: (args) => {
      process.env.LATCHKEY_TESTS = 'all';
      return test(args);
    },
    options: TEST_OPTIONS,
    usage: `npm run test:all [-- <file or folder>... [options of vitest]]

As npm test, with every end-to-end test in both shapes and the fault tests that take minutes. Where Go is installed, it
builds and runs programs that check the protocols and docker-compose.yml.

Environment variables of the fault tests: FAULT_SEED, and for each run FAULT_CHANGES (5000 repeated changes) and
FAULT_UPLOADS (75 uploads that break off).

Deployment has separate tests, which need root on Debian: deploy/test/compose-run and deploy/test/cluster-run.`,
  },
  'test:faults': {
    run: command('e2e/src/faults/main'),
    usage: `npm run test:faults [-- standalone|s3|disk|fleet...]

Stops and breaks processes under load, and checks that nothing is lost, with each target or the named ones in turn: one
process with files on disk, in S3 or on a small disk, and two of each service (fleet).

Environment variables: FAULT_MINUTES (10), FAULT_SECONDS (4) that each fault lasts, FAULT_NAME of the faults, and
FAULT_SEED, which repeats one run.`,
  },
  check: {
    run: async (args) => ((await runChecks(selectChecks(args))).length === 0 ? 0 : 1),
    usage: `npm run check [-- <name>...]

Runs all checks or the named ones: lint, types, dependencies, protocol-lint, protocol-breaking, protocol-generated,
client-generated.`,
  },
  bench: {
    run: (args) => runNode([`${root}bench/main.ts`, ...args]),
    usage: `npm run bench [-- <figure>...]

Measures all figures or the named ones, beside their baselines: F1 to F11.`,
  },
  'check-files': { run: latchkey('admin', 'check-files'), options: ['repair', 'skip-checksums'] },
  accounts: {
    run: latchkey('admin', 'accounts'),
    options: ['username=', 'email=', 'generate', 'keep-links', 'json', 'limit=', 'after='],
  },
  backup: { run: latchkey('admin', 'backup') },
  restore: { run: latchkey('admin', 'restore') },
  listen: {
    run: latchkey('listen'),
    options: ['url=', 'from=', 'json', 'profile=', 'verbose'],
    usage: `npm run listen [-- <application>] [options]

As npx latchkey listen, whose --help lists the options.`,
  },
  generate: {
    run: async () =>
      (await runNode([`${root}packages/contract/scripts/state-rules.ts`])) ||
      (await runTool('buf', ['generate'], { cwd: `${root}proto` })) ||
      (await runNode([clientGenerator])) ||
      runNode([`${root}packages/cli/scripts/generate.ts`]),
    usage: `npm run generate

Writes the numbers of the contract into the protocol and the documents. Generates the code of the protocol, the types of
the client from the OpenAPI document, and the commands in docs/cli.md.`,
  },
  pack: {
    run: pack,
    usage: `npm run pack [-- <folder>]

Writes the packages of the client and of the command line into the folder, or into this one.`,
  },
  format: {
    run: (args) => runTool('biome', ['check', '--write', ...(args.length > 0 ? args : ['.'])]),
    usage: `npm run format [-- <file or folder>...]

Formats everything, or these, and sorts imports.`,
  },
};

const developmentTasks = ['test', 'test:all', 'test:faults', 'check', 'bench', 'generate', 'pack', 'format'];

/** @returns {Promise<number>} the exit code */
export async function runTask(name = '', args) {
  if (!Object.hasOwn(tasks, name)) {
    throw new Failure(`Usage: node scripts/run.mjs ${Object.keys(tasks).join('|')} [arguments]`, 2);
  }
  const { run, usage, options = [] } = tasks[name];
  if (usage !== undefined && args.some((arg) => arg === '--help' || arg === '-h')) {
    process.stdout.write(`Usage: ${usage}\n`);
    return 0;
  }
  if (process.env.npm_lifecycle_event === name) rejectDroppedOptions(name, args, options);
  await ensureInstalled(developmentTasks.includes(name) ? 'all' : 'run');
  return run(args);
}

/** npm takes options before `--` for its own: the task would run without them. */
function rejectDroppedOptions(name, args, options) {
  const npmValue = (option) => process.env[`npm_config_${option.replace('=', '').replaceAll('-', '_')}`];
  const dropped = options.filter(npmValue);
  if (dropped.length === 0) return;
  // npm leaves the value of `--from 3` among the arguments, where it can't be told from them.
  const isLost = (option) => option.endsWith('=') && npmValue(option) === 'true';
  const written = dropped.map((option) => {
    if (!option.endsWith('=')) return `--${option}`;
    return `--${option}${isLost(option) ? '…' : npmValue(option)}`;
  });
  const names = dropped.map((option) => `--${option.replace('=', '')}`).join(' and ');
  const npm = ['start', 'test'].includes(name) ? `npm ${name}` : `npm run ${name}`;
  const line = [npm, '--', ...(dropped.some(isLost) ? ['…'] : args), ...written].join(' ');
  throw new Failure(`npm took ${names} for its own: write \`${line}\`.`, 2);
}

function command(name) {
  return (args) => runNode([`${root}packages/${name}.ts`, ...args], { stdio: STDIO });
}

function latchkey(...words) {
  const run = command('launcher/src/latchkey-cli');
  return (args) => run([...words, ...args]);
}

/** The dashboard that the gateway serves would be the last one that was built. */
async function dev(args) {
  const env = { ...childEnv(), DASHBOARD: 'off' };
  const latchkey = ['--watch', '--watch-preserve-output', `${root}packages/launcher/src/main.ts`, ...args];
  const vite = [`${root}packages/dashboard/node_modules/vite/bin/vite.js`, '--strictPort', '--clearScreen', 'false'];
  const codes = [runNode(latchkey, { env, stdio: STDIO }), runNode(vite, { cwd: `${root}packages/dashboard` })];
  return Math.max(...(await Promise.all(codes)));
}

async function pack([folder = root]) {
  const destination = resolve(folder);
  mkdirSync(destination, { recursive: true });
  const npmPack = (cwd) => run('npm', ['pack', '--pack-destination', destination], { cwd });
  return (
    (await npmPack(`${root}packages/client`)) ||
    (await runNode([`${root}packages/cli/scripts/build.ts`])) ||
    npmPack(`${root}packages/cli/dist`)
  );
}

async function test(args) {
  const failed = args.length > 0 ? [] : await runChecks(checks);
  // After a second SIGINT, vitest would leave its servers running.
  const mode = args.includes('--watch') ? 'watch' : 'run';
  const code = await runNode([`${modulesDir}/vitest/vitest.mjs`, mode, ...args], { leavesCtrlC: true });
  if (failed.length > 0) process.stderr.write(`Failed before the tests: ${failed.map((check) => check.name).join(', ')}.\n`);
  return failed.length > 0 ? code || 1 : code;
}

function selectChecks(names) {
  const unknown = names.filter((name) => !checks.some((check) => check.name === name));
  if (unknown.length > 0) {
    throw new Failure(`Unknown check: ${unknown.join(', ')}. Checks: ${checks.map((check) => check.name).join(', ')}.`, 2);
  }
  return names.length === 0 ? checks : checks.filter((check) => names.includes(check.name));
}
