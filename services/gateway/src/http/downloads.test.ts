import { describe, expect, it } from 'vitest';
import { ReadingPace } from './downloads.ts';

const KIB = 1024;

describe('the pace of a reader', () => {
  /** The second in which it is too slow, reading so many KiB a second, repeated; undefined if never within five minutes. */
  const closedAfter = (...kib: number[]) => {
    const pace = new ReadingPace();
    for (let s = 0; s < 300; s += 1) if (pace.isTooSlow((kib[s % kib.length] as number) * KIB, 1_000)) return s + 1;
    return undefined;
  };

  it.each([
    ['that reads nothing', [0], 10],
    ['at half the lowest rate', [8], 20],
    ['at the lowest rate', [16], undefined],
    ['at the lowest rate, unevenly', [0, 0, 0, 48, 32], undefined],
    ['in bursts, as the system reports them', [...Array<number>(8).fill(0), 1_472], undefined],
  ])('%s', (_, kib, seconds) => {
    expect(closedAfter(...kib)).toBe(seconds);
  });

  it('is too slow in a pause, whatever was read before it', () => {
    const pace = new ReadingPace();
    expect(pace.isTooSlow(4_000 * KIB, 1_000)).toBe(false);
    const seconds = Array.from({ length: 10 }, () => pace.isTooSlow(0, 1_000));
    expect(seconds).toEqual([...Array(9).fill(false), true]);
  });

  it('is not too slow while the server is slower', () => {
    const pace = new ReadingPace();
    for (let s = 0; s < 100; s += 1) {
      if (s % 9 === 0) pace.catchUp();
      expect(pace.isTooSlow(0, 1_000)).toBe(false);
    }
  });
});
