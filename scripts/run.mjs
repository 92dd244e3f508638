// Runs a task of this repository: installs what is missing, then hands over to the pinned Node.js.
// Plain JavaScript without dependencies, as it runs on whatever Node.js is there, before anything
// is installed.

import { existsSync } from 'node:fs';

const nodeMajorMin = 20;

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  process.stderr.write(`Latchkey needs Node.js ${nodeMajorMin} or later, and this is ${process.version}: install a newer one.\n`);
  process.exit(1);
}
if (process.platform === 'win32') {
  process.stderr.write('Latchkey runs on Linux and macOS: on Windows, use the Windows Subsystem for Linux.\n');
  process.exit(1);
}
// The Node.js and the PostgreSQL that npm installs are linked against glibc.
const loaders = { x64: ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-x86-64.so.2'], arm64: ['/lib/ld-linux-aarch64.so.1'] };
if (process.platform === 'linux' && loaders[process.arch]?.some((path) => existsSync(path)) === false) {
  process.stderr.write(
    'Latchkey runs on a Node.js and a PostgreSQL that need glibc, and this system has none (Alpine has musl): use a system with glibc, or the image of docs/deployment.md.\n',
  );
  process.exit(1);
}

const { runTask } = await import('./tasks.mjs');
const { Failure } = await import('./checkout.mjs');
const [task, ...args] = process.argv.slice(2);
try {
  process.exitCode = await runTask(task, args);
} catch (err) {
  if (!(err instanceof Failure)) throw err;
  process.stderr.write(`${err.message}\n`);
  process.exitCode = err.exitCode;
}
