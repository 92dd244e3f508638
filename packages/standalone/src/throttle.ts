/** Passes on so many lines a second, and counts the rest. */
export function throttleLines(emit: (line: string) => void, linesPerSecondMax: number): (line: string) => void {
  let windowStart = Number.NEGATIVE_INFINITY;
  let count = 0;
  return (line) => {
    const now = performance.now();
    if (now - windowStart >= 1_000) {
      if (count > linesPerSecondMax) emit(`${count - linesPerSecondMax} more like these are in the log.`);
      windowStart = now;
      count = 0;
    }
    count += 1;
    if (count <= linesPerSecondMax) emit(line);
  };
}
