import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

/**
 * Retains much of what it allocates, in a start and in a burst; reports the size of V8's space for
 * young objects. The burst is small beside the memory outside the heap.
 */
const PROGRAM = `
  import { setTimeout as delay } from 'node:timers/promises';
  import { getHeapSpaceStatistics } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  const { releaseUnusedMemory } = await import(${JSON.stringify(fileURLToPath(new URL('./unused-memory.ts', import.meta.url)))});
  const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').physical_space_size;
  globalThis.outside = Buffer.alloc(128 * 1024 * 1024, 1);
  globalThis.kept = Array.from({ length: 500_000 }, (_, i) => ({ i }));
  const started = young();
  releaseUnusedMemory(100);
  const released = young();
  // By other code: V8 allocates what the code above makes as old objects by now.
  kept.push(...Array.from({ length: 100_000 }, (_, i) => [i, { text: 'text ' + i }, new Date(i)]));
  const burst = young();
  // V8 may shrink it by itself after 8 s.
  for (const endsAt = performance.now() + 6_000; young() > burst / 4 && performance.now() < endsAt; ) await delay(20);
  const gc = [typeof globalThis.gc, runInNewContext('typeof gc')];
  console.log(JSON.stringify({ started, released, burst, idle: young(), gc, kept: kept.length }));
`;

it('releases the memory of young objects after a start and after any burst, and hides gc again', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
  const { started, released, burst, idle, ...rest } = JSON.parse(stdout);
  expect(released).toBeLessThan(started / 4);
  expect(idle).toBeLessThan(burst / 4);
  expect(rest).toEqual({ gc: ['undefined', 'undefined'], kept: 600_000 });
}, 30_000);
