import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { MemoryRelease } from './unused-memory.ts';

/** Keeps much of what it makes, as loading modules does, before and after; reports the size of the space for young objects in bytes. */
const PROGRAM = `
  import { setTimeout as delay } from 'node:timers/promises';
  import { getHeapSpaceStatistics } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  const { releaseUnusedMemory } = await import(${JSON.stringify(fileURLToPath(new URL('./unused-memory.ts', import.meta.url)))});
  const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').physical_space_size;
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

it('releases what young objects took in a start and in a burst, and leaves no way to collect garbage behind', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
  const { started, released, burst, idle, ...rest } = JSON.parse(stdout);
  expect(released).toBeLessThan(started / 4);
  expect(idle).toBeLessThan(burst / 4);
  expect(rest).toEqual({ gc: ['undefined', 'undefined'], kept: 600_000 });
}, 30_000);

it('collects once after each burst, and not during it', () => {
  let collections = 0;
  let [resident, load] = [200, 0];
  const collect = () => {
    collections += 1;
    resident = 100;
  };
  const release = new MemoryRelease({ collect, residentBytes: () => resident, utilization: () => load });
  release.collect();
  const collectionsAfter = (...checks: Array<[load: number, resident: number]>) => {
    collections = 0;
    for (const [nextLoad, grown] of checks) {
      load = nextLoad;
      resident = Math.max(resident, grown);
      release.check();
    }
    return collections;
  };
  expect(collectionsAfter([0, 100], [0.05, 110], [0, 120])).toBe(0);
  expect(collectionsAfter([0.5, 300], [1, 400], [0.2, 400])).toBe(0);
  expect(collectionsAfter([0.05, 400], [0, 100], [0, 110])).toBe(1);
  expect(collectionsAfter([0.9, 300], [0, 300], [0, 100])).toBe(1);
});
