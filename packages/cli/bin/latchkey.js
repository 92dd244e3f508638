#!/usr/bin/env node
// Of the checkout: runs the sources, on the Node.js of the checkout where the one of
// the machine can't run TypeScript.
import { fileURLToPath } from 'node:url';

const source = new URL('../../standalone/src/latchkey-cli.ts', import.meta.url);
if (process.features.typescript) {
  await import(source.href);
} else {
  const { runNode } = await import('../../../scripts/run-child.mjs');
  const options = { cwd: process.cwd(), leavesCtrlC: true };
  process.exitCode = await runNode([fileURLToPath(source), ...process.argv.slice(2)], options);
}
