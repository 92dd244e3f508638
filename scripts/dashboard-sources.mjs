import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
export const builtDir = `${root}packages/dashboard/dist/`;
export const stampPath = `${builtDir}built-from`;

/** Inputs of the built files, besides the installed packages, which the lockfile names. */
const SOURCES = ['packages/dashboard', 'packages/client/src', 'packages/contract/src', 'pnpm-lock.yaml'];

/** Hash of all sources of the dashboard. Plain JavaScript, as the installer uses it. */
export function hashSources() {
  const hash = createHash('sha256');
  const visit = (path) => {
    const full = root + path;
    let entries;
    try {
      entries = readdirSync(full, { withFileTypes: true });
    } catch (err) {
      if (err.code !== 'ENOTDIR') throw err;
      hash.update(`${path}\0`).update(readFileSync(full));
      return;
    }
    const names = entries.map(({ name }) => name).filter((name) => !['dist', 'node_modules', 'README.md'].includes(name));
    for (const name of names.sort()) visit(`${path}/${name}`);
  };
  for (const path of SOURCES) visit(path);
  return hash.digest('hex');
}

/** True if the built files are those of the sources. */
export function isBuilt() {
  return existsSync(stampPath) && readFileSync(stampPath, 'utf8') === hashSources();
}
