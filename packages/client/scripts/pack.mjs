// Around npm pack: builds JavaScript and type declarations, and makes package.json that of the
// published package for as long as npm reads it. In the checkout it points to the sources. pnpm
// does the latter by itself. Plain JavaScript, as it runs on whatever Node.js npm runs on.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const dir = fileURLToPath(new URL('..', import.meta.url));
const manifest = `${dir}package.json`;
const saved = `${dir}node_modules/.package.json`;

/** Makes the checkout what it was; also after an interrupted npm pack. */
function restore() {
  if (existsSync(saved)) renameSync(saved, manifest);
  rmSync(`${dir}dist`, { recursive: true, force: true });
}

function build() {
  restore();
  const tsc = `${dir}../../node_modules/.bin/tsc`;
  if (!existsSync(tsc)) {
    process.stderr.write('The compiler is not installed: run npm test first.\n');
    process.exit(1);
  }
  execFileSync(tsc, ['-p', dir, '--pretty', 'false'], { stdio: ['ignore', 2, 2] });
  const text = readFileSync(manifest, 'utf8');
  mkdirSync(`${dir}node_modules`, { recursive: true });
  writeFileSync(saved, text);
  const { publishConfig, scripts: _scripts, devDependencies: _dependencies, ...published } = JSON.parse(text);
  writeFileSync(`${saved}.new`, `${JSON.stringify({ ...published, ...publishConfig }, null, 2)}\n`);
  renameSync(`${saved}.new`, manifest);
}

if (process.argv[2] === 'build') build();
else restore();
