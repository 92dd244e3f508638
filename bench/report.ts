/** One line of the report. */
export interface Figure {
  /** Number in `promises.md`. */
  readonly id: string;
  readonly what: string;
  readonly value: string;
  readonly baseline?: string;
  readonly result?: string;
  readonly goal?: string;
}

/** Measurements of ours and of a baseline, by round. */
export interface Rounds {
  readonly ours: number[];
  readonly baseline: number[];
}

/** Measures ours and a baseline in turns, so that noise of the machine hits both. */
export async function compareInTurns(
  rounds: number,
  measureOurs: () => Promise<number>,
  measureBaseline: () => Promise<number>,
): Promise<Rounds> {
  const found: Rounds = { ours: [], baseline: [] };
  for (let round = 0; round < rounds; round += 1) {
    found.ours.push(await measureOurs());
    found.baseline.push(await measureBaseline());
  }
  return found;
}

/** The figure of a comparison: medians, and the median of the ratios. */
export function ratioFigure(
  { id, what, goal }: Pick<Figure, 'id' | 'what' | 'goal'>,
  { ours, baseline }: Rounds,
  { unit, digits }: { readonly unit: string; readonly digits: number },
): Figure {
  const ratios = ours.map((value, round) => value / (baseline[round] ?? Number.NaN));
  const show = (values: readonly number[]) => `${median(values).toFixed(digits)} ${unit}`;
  const result = `${median(ratios).toFixed(2)} (${range(ratios, 2)})`;
  return { id, what, value: show(ours), baseline: show(baseline), result, ...(goal !== undefined && { goal }) };
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

/** Prints a table to standard output. */
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
