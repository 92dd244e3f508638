import { describe, expect, it } from 'vitest';
import { createCatchUp } from './catch-up.ts';

const STARTED_AT = Date.parse('2026-05-12T09:00:00.000Z');
const MINUTE_MS = 60_000;

/** A catch-up with numbers that are found on each look, and how far back each look went, in milliseconds before the start. */
function catchUpWith(found: number[], options: { take?: (one: number) => Promise<void>; firstLookMs?: number } = {}) {
  const state = { now: STARTED_AT, taken: [] as number[], agesMs: [] as number[], isFailing: false };
  const look = createCatchUp<number>({
    clock: () => new Date(state.now),
    firstLookMs: options.firstLookMs ?? 60 * MINUTE_MS,
    overlapMs: 5 * MINUTE_MS,
    async *find(since) {
      state.agesMs.push(STARTED_AT - since.getTime());
      if (state.isFailing) throw new Error('not now');
      yield* found;
    },
    async take(one) {
      state.taken.push(one);
      await options.take?.(one);
    },
  });
  return { state, look: (signal = new AbortController().signal) => look(signal) };
}

describe('a look', () => {
  it('takes all that is found, and the next one begins where it began, less the overlap', async () => {
    const { state, look } = catchUpWith([1, 2]);
    await look();
    state.now += 2 * MINUTE_MS;
    await look();
    await look();
    expect(state.taken).toEqual([1, 2, 1, 2, 1, 2]);
    expect(state.agesMs).toEqual([60 * MINUTE_MS, 5 * MINUTE_MS, 3 * MINUTE_MS]);
  });

  it('may go all the way back at first', async () => {
    const { state, look } = catchUpWith([], { firstLookMs: Number.POSITIVE_INFINITY });
    await look();
    expect(state.agesMs).toEqual([STARTED_AT]);
  });

  it('that can’t find goes as far back the next time', async () => {
    const { state, look } = catchUpWith([1]);
    state.isFailing = true;
    await expect(look()).rejects.toThrow('not now');
    state.isFailing = false;
    state.now += MINUTE_MS;
    await look();
    expect(state.taken).toEqual([1]);
    expect(state.agesMs).toEqual([60 * MINUTE_MS, 59 * MINUTE_MS]);
  });

  it('takes the others where one fails, tells of ten failures at most, and goes as far back the next time', async () => {
    let isFailing = true;
    const all = Array.from({ length: 25 }, (_, i) => i);
    const take = async (one: number) => {
      if (isFailing && one !== 24) throw new Error(`not ${one}`);
    };
    const { state, look } = catchUpWith(all, { take });
    const err: AggregateError = await look().then(
      () => expect.fail('It succeeded'),
      (reason) => reason,
    );
    expect(err.errors.map(({ message }) => message)).toEqual(all.slice(0, 10).map((one) => `not ${one}`));
    expect(state.taken).toEqual(all);
    isFailing = false;
    await look();
    expect(state.agesMs).toEqual([60 * MINUTE_MS, 60 * MINUTE_MS]);
  });

  it.each([1, 3])(
    'that is told to end while it is at number %i takes no more, and goes as far back the next time',
    async (last) => {
      const stop = new AbortController();
      const { state, look } = catchUpWith([1, 2, 3], { take: async (one) => (one === last ? stop.abort() : undefined) });
      await look(stop.signal);
      expect(state.taken).toEqual([1, 2, 3].slice(0, last));
      await look();
      expect(state.agesMs).toEqual([60 * MINUTE_MS, 60 * MINUTE_MS]);
    },
  );
});
