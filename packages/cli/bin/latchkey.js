#!/usr/bin/env node
// The command line in a checkout. Runs the sources, with the Node.js of the checkout if that of the
// machine can't run TypeScript.
import { fileURLToPath } from 'node:url';

const source = new URL('../../launcher/src/latchkey-cli.ts', import.meta.url);
if (process.features.typescript) {
  await import(source.href);
} else {
  const { runNode } = await import('../../../scripts/run-child.mjs');
  const options = { cwd: process.cwd(), leavesCtrlC: true };
  process.exitCode = await runNode([fileURLToPath(source), ...process.argv.slice(2)], options).catch((err) => {
    if (err.code !== 'ENOENT') throw err;
    process.stderr.write('Latchkey is not installed completely. Wait until "npm start" or "npm test" has installed it.\n');
    return 1;
  });
}
