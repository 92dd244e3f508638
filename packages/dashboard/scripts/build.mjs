// Builds the dashboard into `dist`, compressed too, unless its sources are those of the last build.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { builtDir, hashSources, isBuilt, stampPath } from '../../../scripts/dashboard-sources.mjs';

const COMPRESSED = /[.](js|css|svg)$/;
/** Smaller files fit into one packet anyway. */
const COMPRESSED_BYTES_MIN = 1_024;

if (!isBuilt()) {
  const hash = hashSources();
  await build({ root: fileURLToPath(new URL('..', import.meta.url)), logLevel: 'warn', clearScreen: false });
  const assets = `${builtDir}assets/`;
  for (const name of readdirSync(assets).filter((name) => COMPRESSED.test(name))) compress(assets + name);
  writeFileSync(stampPath, hash);
}

function compress(path) {
  const bytes = readFileSync(path);
  if (bytes.length < COMPRESSED_BYTES_MIN) return;
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }));
}
