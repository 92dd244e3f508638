import { spawn, spawnSync } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure, pinnedNode, root } from './checkout.mjs';
import { childEnv, toolPath } from './run-child.mjs';

const protoDir = `${root}proto`;
export const clientGenerator = `${root}packages/client/scripts/generate.ts`;

/** Checks besides the tests. A check that fails gives the output of its tool. */
export const checks = [
  { name: 'lint', run: () => tool('biome', ['check', '--error-on-warnings', '.']) },
  { name: 'types', run: checkTypes },
  { name: 'dependencies', run: () => tool('depcruise', ['packages', 'services', 'bench', 'deploy']) },
  { name: 'protocol-lint', run: () => tool('buf', ['lint'], protoDir) },
  { name: 'protocol-breaking', run: checkBreaking },
  { name: 'protocol-generated', run: checkGenerated },
  { name: 'client-generated', run: () => command(pinnedNode, [clientGenerator, '--check'], root) },
];

/**
 * Runs the checks concurrently, and reports each as it ends.
 *
 * @returns the checks that failed
 */
export async function runChecks(selected) {
  const startedAt = performance.now();
  const failed = [];
  const runCheck = async (check) => {
    const { ok, skipped, output = '' } = await check.run();
    const duration = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
    if (!ok) failed.push(check);
    if (skipped) process.stdout.write(`- ${check.name}: not checked, ${skipped}\n`);
    else process.stdout.write(ok ? `✓ ${check.name} (${duration})\n` : `✗ ${check.name} (${duration})\n${output.trimEnd()}\n`);
  };
  await Promise.all(selected.map(runCheck));
  return failed;
}

async function checkTypes() {
  for (const project of ['.', 'packages/dashboard', 'scripts']) {
    const checked = await tool('tsc', ['-p', project, '--pretty', 'false']);
    if (!checked.ok) return checked;
  }
  return tool('tsc', ['-p', 'examples', '--pretty', 'false']);
}

async function checkBreaking() {
  const { ref, reason } = findBaseline();
  if (reason) return { ok: true, skipped: reason };
  return tool('buf', ['breaking', '--against', `../.git#ref=${ref},subdir=proto`], protoDir);
}

/**
 * The commit that the protocol must stay compatible with: the one that CI names, as one push may
 * bring many; else the last one while the protocol has uncommitted changes, or the one before it.
 */
function findBaseline() {
  const status = git('status', '--porcelain', '--', 'proto');
  if (status === undefined) return { reason: 'as this is not a git checkout, or git is missing' };
  const given = process.env.BREAKING_BASELINE ?? '';
  // GitHub gives zeros for a new branch.
  const isGiven = given !== '' && !/^0+$/.test(given);
  const ref = git('rev-parse', '--verify', '--quiet', `${isGiven ? given : status === '' ? 'HEAD~1' : 'HEAD'}^{commit}`);
  if (ref === undefined && isGiven) throw new Failure(`There is no commit ${given}, which BREAKING_BASELINE names.`);
  if (ref === undefined) return { reason: 'as there is no earlier commit here' };
  return git('ls-tree', ref, 'proto/buf.yaml') ? { ref } : { reason: 'as the earlier commit has no protocol' };
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return status === 0 ? stdout.trim() : undefined;
}

/** Generates the code again, elsewhere, and compares. */
async function checkGenerated() {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-generated-'));
  try {
    await cp(`${protoDir}/gen`, join(dir, 'committed'), { recursive: true });
    const generated = await tool('buf', ['generate', '--output', join(dir, 'fresh')], protoDir);
    if (!generated.ok) return generated;
    const { ok, output } = await command('diff', ['-rq', 'committed', 'fresh/gen'], dir);
    return { ok, output: `proto/gen is out of date, run npm run generate:\n${output}` };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function tool(name, args, cwd = root) {
  return command(toolPath(name), args, cwd);
}

function command(path, args, cwd) {
  return new Promise((resolve) => {
    const child = spawn(path, args, { cwd, env: { ...childEnv(), NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.once('error', (err) => resolve({ ok: false, output: err.message }));
    child.once('close', (code) => resolve({ ok: code === 0, output }));
  });
}
