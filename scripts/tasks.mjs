import { checks, runChecks } from './checks.mjs';
import { Failure } from './failure.mjs';
import { ensureInstalled } from './install.mjs';
import { modulesDir, root } from './paths.mjs';
import { runNode, runTool } from './run-child.mjs';
import { refuseSwallowedOptions, usageOf } from './usage.mjs';

/** What can be run, by name. Each takes the arguments from the command line and gives the exit code. */
const tasks = {
  // The launcher tells a repeated signal from the same one that came twice, so it may have all of them.
  start: (args) => runNode([`${root}packages/standalone/src/main.ts`, ...args], { endsWithUs: true }),
  test,
  'test:all': testAll,
  'test:faults': testFaults,
  check: (args) => runChecks(selectChecks(args)).then((failed) => (failed.length === 0 ? 0 : 1)),
  bench: (args) => runNode([`${root}bench/main.ts`, ...args]),
  'check-files': (args) => runNode([`${root}packages/standalone/src/check-files-main.ts`, ...args], { endsWithUs: true }),
  accounts: (args) => runNode([`${root}packages/standalone/src/accounts-main.ts`, ...args], { endsWithUs: true }),
  backup: (args) => runNode([`${root}packages/standalone/src/backup-main.ts`, ...args], { endsWithUs: true }),
  restore: (args) => runNode([`${root}packages/standalone/src/restore-main.ts`, ...args], { endsWithUs: true }),
  listen: (args) => runNode([`${root}packages/standalone/src/listen-main.ts`, ...args], { endsWithUs: true }),
  generate,
  format: (args) => runTool('biome', ['check', '--write', ...(args.length > 0 ? args : ['.'])]),
};

const needDevelopmentTools = new Set(['test', 'test:all', 'test:faults', 'check', 'bench', 'generate', 'format']);

/**
 * @param {string | undefined} name
 * @param {string[]} args
 * @returns {Promise<number>} the exit code
 */
export async function runTask(name, args) {
  const task = Object.hasOwn(tasks, name ?? '') ? tasks[name] : undefined;
  if (!task) throw new Failure(`Usage: node scripts/run.mjs ${Object.keys(tasks).join('|')} [arguments]`, 2);
  const usage = usageOf(name, args);
  if (usage !== undefined) {
    process.stdout.write(usage);
    return 0;
  }
  refuseSwallowedOptions(name, args, process.env);
  await ensureInstalled(needDevelopmentTools.has(name) ? 'all' : 'run');
  return task(args);
}

/** The code of the protocol, and the document of the live events. Arguments are for the first. */
async function generate(args) {
  const asyncApi = `${root}docs/asyncapi.json`;
  return (
    (await runTool('buf', ['generate', ...args], { cwd: `${root}proto` })) ||
    (await runNode([`${root}services/realtime/src/asyncapi/write-document.ts`])) ||
    (await runTool('biome', ['format', '--write', asyncApi]))
  );
}

/** Everything that must hold: the checks, then the tests. With arguments, for working on some tests, just those. */
async function test(args) {
  const failed = args.length > 0 ? [] : await runChecks(checks);
  // At a terminal, Ctrl-C reaches the child without us, and a second signal would keep it from tidying up.
  const code = await runNode([`${modulesDir}/vitest/vitest.mjs`, 'run', ...args], { interruptedByTerminal: true });
  if (failed.length > 0) process.stderr.write(`Failed before the tests: ${failed.map((check) => check.name).join(', ')}.\n`);
  return failed.length > 0 ? code || 1 : code;
}

/** The same with every end-to-end test in both shapes, and with the faults that take minutes. */
function testAll(args) {
  process.env.LATCHKEY_TESTS = 'all';
  return test(args);
}

/** Breaks processes, servers and stores under load: of every target in turn, or of the named ones. */
function testFaults(targets) {
  return runNode([`${root}packages/standalone/src/testing/faults/main.ts`, ...targets], { endsWithUs: true });
}

function selectChecks(names) {
  const unknown = names.filter((name) => !checks.some((check) => check.name === name));
  if (unknown.length > 0) {
    throw new Failure(`There is no check ${unknown.join(', ')}; there are ${checks.map((check) => check.name).join(', ')}.`, 2);
  }
  return names.length === 0 ? checks : checks.filter((check) => names.includes(check.name));
}
