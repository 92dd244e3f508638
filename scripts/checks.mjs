import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { breakingBaseline } from './breaking-baseline.mjs';
import { root } from './paths.mjs';
import { childEnv, toolPath } from './run-child.mjs';

/**
 * What must hold besides the tests. A check gives what a tool has to say: nothing when all is well, or why it could not
 * be made.
 */
export const checks = [
  { name: 'lint', run: () => tool('biome', ['check', '--error-on-warnings', '.']) },
  { name: 'types', run: () => tool('tsc', ['-p', '.', '--pretty', 'false']) },
  { name: 'dependencies', run: () => tool('depcruise', ['packages', 'services', 'bench', 'deploy']) },
  { name: 'protocol-lint', run: () => tool('buf', ['lint'], join(root, 'proto')) },
  { name: 'protocol-breaking', run: checkBreaking },
  { name: 'protocol-generated', run: checkGenerated },
];

/** @returns the checks that failed */
export async function runChecks(selected) {
  const failed = [];
  for (const check of selected) {
    const startedAt = performance.now();
    const { ok, skipped, output = '' } = await check.run();
    const duration = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
    if (ok) {
      process.stdout.write(skipped ? `- ${check.name}: not checked, ${skipped}\n` : `✓ ${check.name} (${duration})\n`);
      continue;
    }
    failed.push(check);
    process.stdout.write(`✗ ${check.name} (${duration})\n${output.trimEnd()}\n`);
  }
  return failed;
}

async function checkBreaking() {
  const baseline = breakingBaseline();
  if (baseline.reason) return { ok: true, skipped: baseline.reason };
  return tool('buf', ['breaking', '--against', `../.git#ref=${baseline.ref},subdir=proto`], join(root, 'proto'));
}

/** Generates again, elsewhere, and compares. */
async function checkGenerated() {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-generated-'));
  try {
    await cp(join(root, 'proto', 'gen'), join(dir, 'committed'), { recursive: true });
    const generated = await tool('buf', ['generate', '--output', join(dir, 'fresh')], join(root, 'proto'));
    if (!generated.ok) return generated;
    const difference = await command('diff', ['-rq', 'committed', 'fresh/gen'], dir);
    return difference.ok
      ? difference
      : { ok: false, output: `proto/gen is out of date, run npm run generate:\n${difference.output}` };
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
