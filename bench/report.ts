/** One line of the report. */
export interface Figure {
  /** Number in `promises.md`. */
  readonly id: string;
  readonly what: string;
  readonly value: string;
  readonly baseline: string;
  readonly result: string;
  readonly goal: string;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that a share of all, from 0 to 1, does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Smallest and largest, for the reader to see how noisy the machine was. */
export function range(values: readonly number[], digits: number): string {
  return `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`;
}

/** Prints a table to standard output. */
export function printFigures(figures: readonly Figure[]): void {
  const rows = [
    ['', 'figure', 'ours', 'baseline', 'result', 'goal'],
    ...figures.map((f) => [f.id, f.what, f.value, f.baseline, f.result, f.goal]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows)
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    );
}
