import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

const COMMANDS = {
  apps: ['migrate'],
  files: ['avatar-worker', 'check', 'migrate'],
  gateway: [],
  identity: ['accounts', 'migrate'],
  realtime: [],
} as const;

/** Runs a service without a setting. */
function run(name: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const main = join('services', name, 'src/main.ts');
    execFile(process.execPath, [main, ...args], { cwd: ROOT, env: {} }, (err, stdout, stderr) =>
      resolve({ code: err ? Number(err.code) : 0, stdout, stderr }),
    );
  });
}

describe.each(Object.entries(COMMANDS))('%s as a process', { timeout: 30_000 }, (name, commands) => {
  it('names the commands there are, and starts nothing, where it is given another', async () => {
    const { code, stdout, stderr } = await run(name, 'migrat');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^Unknown command migrat\. [^\n]*--help[^\n]*\.\n$/);
    for (const command of commands) expect(stderr).toContain(command);
  });

  it('lists them with --help', async () => {
    const { code, stdout, stderr } = await run(name, '--help');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`node services/${name}/src/main.ts`);
    const listed = stdout.split('\n').flatMap((line) => /^ {2}([a-z-]+) {2}/.exec(line)?.[1] ?? []);
    expect(listed).toEqual([...commands]);
  });
});

describe('migrate', { timeout: 30_000 }, () => {
  it.each(['apps', 'files', 'identity'])('takes no arguments: %s', async (name) => {
    expect(await run(name, 'migrate', '--dry-run')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'migrate takes no arguments.\n',
    });
  });
});
