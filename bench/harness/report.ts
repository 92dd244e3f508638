export interface Figure {
  readonly id: string;
  readonly what: string;
  readonly value: string;
  readonly baseline?: string;
  readonly result?: string;
  readonly goal?: string;
}

/** Subject of a comparison, and the format of its values. */
export interface Comparison extends Pick<Figure, 'id' | 'what' | 'goal'> {
  readonly rounds: number;
  readonly unit: string;
  readonly digits: number;
}

/**
 * Measures ours and a baseline alternately, so that noise of the machine hits both. The figure has
 * the medians, and the median of the ratios.
 */
export async function compare(
  { rounds, unit, digits, ...figure }: Comparison,
  measureOurs: () => Promise<number>,
  measureBaseline: () => Promise<number>,
): Promise<Figure> {
  const values = { ours: [] as number[], baseline: [] as number[], ratio: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    const [our, bare] = [await measureOurs(), await measureBaseline()];
    values.ours.push(our);
    values.baseline.push(bare);
    values.ratio.push(our / bare);
  }
  const show = (each: readonly number[]) => `${median(each).toFixed(digits)} ${unit}`;
  const result = `${median(values.ratio).toFixed(2)} (${range(values.ratio, 2)})`;
  return { ...figure, value: show(values.ours), baseline: show(values.baseline), result };
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

/** Smallest and largest, which show how noisy the machine was. */
export function range(values: readonly number[], digits: number): string {
  return `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`;
}

export function printFigures(figures: readonly Figure[]): void {
  const rows = [
    ['', 'figure', 'ours', 'baseline', 'result', 'goal'],
    ...figures.map(({ id, what, value, baseline = '', result = '', goal = '' }) => [id, what, value, baseline, result, goal]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
}
