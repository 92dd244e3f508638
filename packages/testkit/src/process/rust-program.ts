import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isTestAll } from '../vitest/test-all.ts';

const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey/rust', import.meta.url));
const BUILD_MS_MAX = 5 * 60_000;

/**
 * Builds a program around a crate at one version, once. As that takes a while, only `npm run
 * test:all` does; other runs use what it built.
 *
 * @returns its path, or why it is missing, for the report of skipped tests
 */
export async function findRustProgram(
  crate: { readonly name: string; readonly version: string },
  main: string,
): Promise<string | { readonly unavailable: string }> {
  const dir = join(CACHE_DIR, `${crate.name}@${crate.version}`);
  const path = join(dir, 'target/release/judge');
  if (existsSync(path)) return path;
  if (!isTestAll) return { unavailable: 'npm run test:all builds it' };
  try {
    await mkdir(join(dir, 'src'), { recursive: true });
    const manifest = `[package]\nname = "judge"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n`;
    await writeFile(join(dir, 'Cargo.toml'), `${manifest}${crate.name} = "=${crate.version}"\n`);
    await writeFile(join(dir, 'src/main.rs'), main);
    await promisify(execFile)('cargo', ['build', '--release', '--quiet'], { cwd: dir, timeout: BUILD_MS_MAX });
    return path;
  } catch (err) {
    return { unavailable: `building it needs cargo: ${(err as Error).message.trim().split('\n').at(-1)}` };
  }
}
