import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isTestAll } from '../vitest/test-all.ts';

const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey/go', import.meta.url));
const BUILD_MS_MAX = 15 * 60_000;

/** A module of Go at one version, such as a conformance suite that its authors maintain. */
export interface GoModule {
  readonly name: string;
  readonly version: string;
}

/**
 * Builds a program of a module, once for each version. As that takes minutes, only `npm run
 * test:all` does; other runs use what it built.
 *
 * @param folder the program's folder in its module
 * @returns its path, or why it is missing, for the names of skipped tests
 */
export async function findGoProgram(module: GoModule, folder: string): Promise<string | { readonly unavailable: string }> {
  const dir = join(CACHE_DIR, `${module.name.replaceAll('/', '-')}@${module.version}`);
  const path = join(dir, basename(folder));
  if (existsSync(path)) return path;
  if (!isTestAll) return { unavailable: 'npm run test:all builds it' };
  try {
    await go(['install', `${module.name}/${folder}@${module.version}`], { GOBIN: dir });
    return path;
  } catch (err) {
    return { unavailable: `building it needs Go: ${(err as Error).message.trim().split('\n').at(-1)}` };
  }
}

/** The folder of a module's source. */
export async function goModuleDir({ name, version }: GoModule): Promise<string> {
  return JSON.parse(await go(['mod', 'download', '-json', `${name}@${version}`])).Dir;
}

async function go(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { env: { ...process.env, ...env }, timeout: BUILD_MS_MAX, maxBuffer: 16 * 1024 * 1024 };
  return (await promisify(execFile)('go', args, options)).stdout;
}
