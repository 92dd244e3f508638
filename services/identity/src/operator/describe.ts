import type { Account } from '../account/account.ts';

/** An account for scripts. */
export function accountJson({ id, username, email, twoFactorEnabled, createdAt }: Account): object {
  return { id, username, email, twoFactorEnabled, createdAt };
}

/** A number of things: `1 session was`, `2 sessions were`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Text that was chosen by users, without what could move or hide other text on a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

/** Rows below their headings, each column as wide as it has to be. */
export function table(headings: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const widths = headings.map((heading, i) => Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [headings, ...rows].map(line).join('\n');
}
