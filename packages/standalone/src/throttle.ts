/**
 * Lets through so many lines a second; of the rest it tells how many there were.
 *
 * @param linesMax how many lines may pass within one second
 */
export function throttleLines(emit: (line: string) => void, linesMax: number): (line: string) => void {
  let windowStart = Number.NEGATIVE_INFINITY;
  let passed = 0;
  let held = 0;
  return (line) => {
    const now = performance.now();
    if (now - windowStart >= 1_000) {
      if (held > 0) emit(`${held} more like these are in the log.`);
      windowStart = now;
      passed = 0;
      held = 0;
    }
    if (passed >= linesMax) {
      held += 1;
      return;
    }
    passed += 1;
    emit(line);
  };
}
