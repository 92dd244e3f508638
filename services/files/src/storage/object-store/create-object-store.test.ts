import { startMeasuring } from '@latchkey/kit/telemetry/metrics';
import { expect, it } from 'vitest';
import { observeStore } from './create-object-store.ts';
import type { ObjectStore } from './object-store.ts';

it('removes every object of a call, also while it is measured', async () => {
  await startMeasuring('test');
  const removed: string[] = [];
  const store = { remove: async (...keys: string[]) => void removed.push(...keys) } as Partial<ObjectStore> as ObjectStore;
  await observeStore(store).remove('a/1', 'a/2');
  expect(removed).toEqual(['a/1', 'a/2']);
});
