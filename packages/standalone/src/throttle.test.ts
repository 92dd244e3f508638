import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { throttleLines } from './throttle.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('lets some lines through each second and counts the rest', () => {
  const lines: string[] = [];
  const emit = throttleLines((line) => lines.push(line), 2);
  for (const line of ['a', 'b', 'c', 'd']) emit(line);
  vi.advanceTimersByTime(1_000);
  emit('e');
  expect(lines).toEqual(['a', 'b', '2 more like these are in the log.', 'e']);
});
