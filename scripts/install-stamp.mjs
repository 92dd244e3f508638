import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modulesDir, pinnedNode, root } from './paths.mjs';

const stampPath = join(modulesDir, '.latchkey-installed');

/** Whether what is installed is what the lockfile and the manifests ask for, on this platform. */
export function isInstalled() {
  try {
    return existsSync(pinnedNode) && readFileSync(stampPath, 'utf8') === currentStamp();
  } catch {
    return false;
  }
}

export function writeStamp() {
  writeFileSync(stampPath, currentStamp());
}

function currentStamp() {
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
