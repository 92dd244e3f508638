import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findGoProgram, goModuleDir } from '@latchkey/testkit/process/go-program';
import { describe, expect, it, onTestFinished } from 'vitest';

const SUITE = { name: 'connectrpc.com/conformance', version: 'v1.0.7' };
const runner = await findGoProgram(SUITE, 'cmd/connectconformance');
const run = promisify(execFile);
const inTesting = (name: string) => fileURLToPath(new URL(`../testing/conformance/${name}`, import.meta.url));
const buf = fileURLToPath(new URL('../../../../node_modules/.bin/buf', import.meta.url));

/** Errors of a handler's choice: our server masks all but those of a service's catalogue. */
const MASKED = ['Errors/**', 'Connect to HTTP Code Mapping/**', 'Duplicate Metadata/**/error'];

const reason = typeof runner === 'string' ? '' : ` (${runner.unavailable})`;

describe.skipIf(reason)(`the conformance suite of Connect${reason}`, { timeout: 180_000 }, () => {
  it.each([
    ['client', []],
    ['server', MASKED],
  ] as const)('passes our %s', async (mode, failing) => {
    const dir = await mkdtemp(join(tmpdir(), 'latchkey-conformance-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const types = join(dir, 'types.binpb');
    await run(buf, ['build', join(await goModuleDir(SUITE), 'proto'), '--output', types]);
    const options = ['--mode', mode, '--conf', inTesting('config.yaml'), ...failing.flatMap((name) => ['--known-failing', name])];
    const program = [process.execPath, inTesting(`${mode}.ts`)];
    const env = { ...process.env, CONFORMANCE_TYPES: types };
    const { stdout } = await run(runner as string, [...options, '--', ...program], { env }).catch((err) => err);
    expect(stdout).toMatch(/\b[1-9]\d* passed, 0 failed/);
  });
});
