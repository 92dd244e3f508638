import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const BUILT = new URL('../../dashboard/dist/', import.meta.url);
const KIB = 1_024;
const SCRIPT_BYTES_MAX = 150 * KIB;
/** Each counts against the requests a minute of an address. */
const SCRIPTS_MAX = 15;

interface Chunk {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
}

/** The chunks of the build by their sources. */
const chunks = JSON.parse(readFileSync(new URL('.vite/manifest.json', BUILT), 'utf8')) as Readonly<Record<string, Chunk>>;

/** The scripts of every page. */
const initialFiles = [...readFileSync(new URL('index.html', BUILT), 'utf8').matchAll(/<script [^>]*src="([^"]+)"/g)].map(
  ([, path = '']) => path,
);

/** Files that a source loads with what it imports, but not what it loads on demand. */
function filesOf(source: string, found = new Set<string>()): Set<string> {
  const { file, imports = [] } = chunks[source] as Chunk;
  if (found.has(file)) return found;
  found.add(file);
  for (const imported of imports) filesOf(imported, found);
  return found;
}

it.each([
  ['applications', []],
  ['sign-in', ['pages/sign-in/view.tsx']],
])('the first page %s loads at most 150 KiB of compressed script in 15 files', (_page, views) => {
  const files = [...initialFiles, ...views.flatMap((view) => [...filesOf(`src/${view}`)])];
  const urls = new Set(files.map((file) => new URL(file, BUILT).href));
  expect(urls.size).toBeLessThanOrEqual(SCRIPTS_MAX);
  const bytes = [...urls].map((url) => gzipSync(readFileSync(new URL(url))).length).reduce((sum, size) => sum + size);
  expect(bytes).toBeLessThanOrEqual(SCRIPT_BYTES_MAX);
});
