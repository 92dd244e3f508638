import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modulesDir, pinnedNode, root } from './paths.mjs';

const stampPath = join(modulesDir, '.latchkey-installed');

/**
 * @typedef {'run' | 'all'} Scope what an installation serves: `run` leaves out what only tests, checks and benchmarks
 *   need, `all` includes it
 */

/**
 * Whether an installation of this scope, or a larger one, matches the lockfile, the manifests and the platform.
 *
 * @param {Scope} scope
 */
export function isInstalled(scope) {
  const stamp = readStamp();
  return existsSync(pinnedNode) && stamp.hash === currentHash() && (stamp.scope === 'all' || scope === 'run');
}

/** @param {Scope} scope */
export function writeStamp(scope) {
  writeFileSync(stampPath, `${scope} ${currentHash()}`);
}

/** What the last installation was for, also when it is out of date. */
export function readStamp() {
  try {
    const [scope, ...hash] = readFileSync(stampPath, 'utf8').split(' ');
    return { scope, hash: hash.join(' ') };
  } catch {
    return {};
  }
}

function currentHash() {
  const hash = createHash('sha256');
  for (const path of [...manifestPaths(), 'pnpm-lock.yaml', 'pnpm-workspace.yaml']) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return `${process.platform}-${process.arch} ${hash.digest('hex')}`;
}

function manifestPaths() {
  const groups = ['packages', 'services'].flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`));
  return ['.', 'proto', 'bench', 'examples', 'deploy', ...groups]
    .map((folder) => `${folder}/package.json`)
    .filter((path) => existsSync(join(root, path)));
}
