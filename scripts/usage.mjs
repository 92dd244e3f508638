import { Failure } from './failure.mjs';

/**
 * Help and options of the npm scripts. Tasks without `usage` print their own help.
 *
 * `options`, with `=` where they take a value, are those that npm takes for its own, and drops,
 * unless `--` precedes them. Names that are settings of npm too, such as `json`, are left out, as
 * they may be set in an .npmrc.
 */
const tasks = {
  start: { options: ['deployed'] },
  listen: { options: ['url=', 'from='] },
  'check-files': { options: ['mend', 'skip-checksums'] },
  accounts: { options: ['username=', 'email=', 'generate', 'limit=', 'after=', 'subject='] },
  test: {
    usage: `npm test [-- <file or folder>... [options of vitest]]

Without arguments it runs all checks and all tests; with them, these tests and no check.`,
    options: ['project=', 'reporter=', 'bail='],
  },
  'test:all': {
    usage: `npm run test:all [-- <file or folder>... [options of vitest]]

As npm test, with every end-to-end test in both shapes and the fault tests that take minutes.`,
    options: ['project=', 'reporter=', 'bail='],
  },
  'test:faults': {
    usage: `npm run test:faults [-- <target>...]

Breaks processes, servers and stores under load, and checks that no promise is broken.
Targets: standalone, s3, disk, fleet (two of each service); all in turn unless named.

Environment variables: FAULT_MINUTES (10), FAULT_SEED, FAULT_SECONDS (4, of each fault), FAULT_NAME (a part of it).`,
  },
  check: {
    usage: `npm run check [-- <name>...]

Runs all checks or the named ones: lint, types, dependencies, protocol-lint, protocol-breaking, protocol-generated.`,
  },
  bench: {
    usage: `npm run bench [-- <figure>...]

Measures all figures or the named ones, beside their baselines: F1 to F10, beside, storm.`,
  },
  generate: {
    usage: `npm run generate [-- <options of buf generate>]

Generates the code of the protocol and docs/asyncapi.json.`,
  },
  format: {
    usage: `npm run format [-- <file or folder>...]

Formats everything, or these, and sorts imports.`,
  },
};

/** @returns {string | undefined} the help of a task, where it is asked for and the task itself has none */
export function usageOf(name, args) {
  const { usage } = tasks[name] ?? {};
  return usage !== undefined && args.some((arg) => arg === '--help' || arg === '-h') ? `Usage: ${usage}\n` : undefined;
}

/**
 * Refuses to run a task without options that were meant for it: npm takes what stands before `--` for its own settings.
 *
 * @param {string} name
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
export function refuseSwallowedOptions(name, args, env) {
  if (env.npm_lifecycle_event !== name) return;
  const valueIn = (option) => env[`npm_config_${option.replace('=', '').replaceAll('-', '_')}`];
  const swallowed = (tasks[name]?.options ?? []).filter(valueIn);
  if (swallowed.length === 0) return;
  // npm leaves the value of `--from 3` among the arguments, where it can't be told from them.
  const isLost = swallowed.some((option) => option.endsWith('=') && valueIn(option) === 'true');
  const options = swallowed.map((option) => {
    if (!option.endsWith('=')) return `--${option}`;
    return `--${option}${valueIn(option) === 'true' ? '…' : valueIn(option)}`;
  });
  const command = ['start', 'test'].includes(name) ? `npm ${name}` : `npm run ${name}`;
  const names = options.map((option) => option.replace(/=.*/, '')).join(' and ');
  throw new Failure(
    `npm took ${names} for its own: write \`${[command, '--', ...(isLost ? ['…'] : args), ...options].join(' ')}\`.`,
    2,
  );
}
