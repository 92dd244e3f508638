#!/usr/bin/env node
// The package has one bundled file. A checkout runs the sources, which need its own Node.js where
// the machine's is older.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const source = new URL('../src/main.ts', import.meta.url);
const bundle = new URL('../dist/latchkey.js', import.meta.url);
if (!existsSync(source)) {
  await import(bundle.href);
} else if (process.features.typescript) {
  await import(source.href);
} else {
  const { runNode } = await import('../../../scripts/run-child.mjs');
  const options = { cwd: process.cwd(), leavesCtrlC: true };
  process.exitCode = await runNode([fileURLToPath(source), ...process.argv.slice(2)], options);
}
