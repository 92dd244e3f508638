import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const packageDir = fileURLToPath(new URL('..', import.meta.url));
const outDir = process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url));

/**
 * Writes the package as it is published into `dist` or another folder: one file for Node.js 20, no
 * dependencies.
 */
await rm(outDir, { recursive: true, force: true });
await build({
  input: `${packageDir}/src/main.ts`,
  platform: 'node',
  transform: { target: 'node20' },
  output: { file: `${outDir}/latchkey.js`, format: 'esm', minify: true, codeSplitting: false },
});
const { name, version, description, license, type, engines } = JSON.parse(await readFile(`${packageDir}/package.json`, 'utf8'));
const manifest = { name, version, description, license, type, bin: { latchkey: 'latchkey.js' }, engines };
await writeFile(`${outDir}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
