import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

/** Keeps much of what it makes, as loading modules does, and tells what the space for young objects takes before and after, in bytes. */
const PROGRAM = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  const { releaseStartMemory } = await import(${JSON.stringify(fileURLToPath(new URL('./start-memory.ts', import.meta.url)))});
  const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').physical_space_size;
  globalThis.kept = Array.from({ length: 500_000 }, (_, i) => ({ i }));
  const before = young();
  releaseStartMemory();
  console.log(JSON.stringify({ before, after: young(), gc: [typeof globalThis.gc, runInNewContext('typeof gc')], kept: kept.length }));
`;

it('gives back what young objects took in a start, and leaves no way to collect garbage behind', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
  const { before, after, ...rest } = JSON.parse(stdout);
  expect(after).toBeLessThan(before / 4);
  expect(rest).toEqual({ gc: ['undefined', 'undefined'], kept: 500_000 });
});
