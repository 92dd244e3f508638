import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from './program.ts';

/** Runs a service without a setting. */
function run(name: string, ...args: string[]) {
  const command = [`services/${name}/src/main.ts`, ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: ROOT, env: {}, encoding: 'utf8' });
  return { status, stdout, stderr };
}

it.each([
  ['apps', ['migrate']],
  ['files', ['avatar-worker', 'check', 'migrate']],
  ['gateway', []],
  ['identity', ['accounts', 'migrate']],
  ['realtime', []],
])('%s lists its commands with --help', (name, commands) => {
  const { status, stdout, stderr } = run(name, '--help');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain(`node services/${name}/src/main.ts`);
  expect(stdout.split('\n').flatMap((line) => /^ {2}([a-z-]+) {2}/.exec(line)?.[1] ?? [])).toEqual(commands);
});

it.each([
  [['migrat'], /^Unknown command migrat\. [^\n]*avatar-worker[^\n]*--help[^\n]*\.\n$/],
  [['migrate', '--dry-run'], /^migrate takes no arguments\.\n$/],
])('files rejects the arguments %j, and starts nothing', (args, sentence) => {
  expect(run('files', ...args)).toEqual({ status: 2, stdout: '', stderr: expect.stringMatching(sentence) });
});
