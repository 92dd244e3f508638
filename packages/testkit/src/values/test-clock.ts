export type TestClock = ReturnType<typeof createTestClock>;

/** A clock at a fixed time in the middle of a month. */
export function createTestClock() {
  let time = Date.parse('2026-05-12T09:00:00.000Z');
  return {
    now: () => new Date(time),
    advance(ms: number) {
      time += ms;
    },
  };
}
