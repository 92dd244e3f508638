import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Limit } from './limit.ts';
import { LocalCounters } from './local-counters.ts';

const LIMIT: Limit = { name: 'ip', max: 2, windowMs: 60_000 };

describe('the counters of a process', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => vi.useRealTimers());

  it('deny what is past the limit until the window ends, and count anew from then on', () => {
    const counters = new LocalCounters();
    expect([1, 2, 3].map(() => counters.hit(LIMIT, 'a').allowed)).toEqual([true, true, false]);
    vi.advanceTimersByTime(59_999);
    expect(counters.hit(LIMIT, 'a').allowed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(counters.hit(LIMIT, 'a')).toMatchObject({ allowed: true, remaining: 1, resetMs: 60_000 });
  });

  it('begin the window with the first event, whatever follows', () => {
    const counters = new LocalCounters();
    counters.hit(LIMIT, 'a');
    vi.advanceTimersByTime(40_000);
    expect(counters.hit(LIMIT, 'a').resetMs).toBe(20_000);
  });

  it('are one for each name', () => {
    const counters = new LocalCounters();
    counters.hit(LIMIT, 'a');
    expect(counters.hit(LIMIT, 'b').remaining).toBe(1);
  });

  it('take an event back, and never more than there were', () => {
    const counters = new LocalCounters();
    counters.hit(LIMIT, 'a');
    for (let i = 0; i < 5; i += 1) counters.refund('a');
    counters.refund('unknown');
    expect(counters.hit(LIMIT, 'a').remaining).toBe(1);
  });
});
