import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { limitRate, limitRepeats } from './reporter.ts';

let lines: string[];
const emit = (line: string) => lines.push(line);
beforeEach(() => {
  lines = [];
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

it('shows some lines each second and counts the rest', () => {
  const report = limitRate(emit, 2);
  for (const line of ['a', 'b', 'c', 'd']) report(line);
  vi.advanceTimersByTime(1_000);
  report('e');
  expect(lines).toEqual(['a', 'b', '2 more like these are in the log.', 'e']);
});

it('shows each line once in an interval', () => {
  const report = limitRepeats(emit, 1_000);
  for (const line of ['a', 'b', 'a', 'b']) report(line);
  vi.advanceTimersByTime(1_000);
  report('a');
  expect(lines).toEqual(['a', 'b', 'a']);
});
