import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isTestAll } from '@latchkey/testkit/vitest/test-all';
import { onTestFinished } from 'vitest';

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** A reason to skip tests with tools of Python; undefined where they run. */
const NEEDS = isTestAll
  ? spawnSync('python3', ['-c', 'import ensurepip, venv']).status !== 0 && 'Python 3 with venv (Debian: apt install python3-venv)'
  : 'npm run test:all';

/** Options of tests with tools of Python, which `npm run test:all` installs. */
export const WITH_PYTHON = {
  skip: NEEDS !== false,
  timeout: 600_000,
  ...(NEEDS && { meta: { needs: NEEDS } }),
};

/** A program of Python in a folder that the end of the test removes. */
export interface PythonTool {
  readonly dir: string;
  /**
   * Runs a program of the installed packages in the folder. Rejects, with its output, if it fails.
   */
  run(program: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string>;
}

/** Installs a package, such as `tuspy==1.1.0`, for one test. */
export async function installPython(requirement: string): Promise<PythonTool> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-python-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await run('python3', ['-m', 'venv', join(dir, 'venv')]);
  const runProgram: PythonTool['run'] = async (program, args, env) => {
    const options = { cwd: dir, env: { ...process.env, ...env }, maxBuffer: OUTPUT_BYTES_MAX };
    const { stdout } = await run(join(dir, 'venv', 'bin', program), [...args], options);
    return stdout;
  };
  await runProgram('pip', ['install', '--quiet', '--disable-pip-version-check', requirement]);
  return { dir, run: runProgram };
}
