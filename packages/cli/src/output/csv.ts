import { printable } from './text.ts';

/** A line of comma-separated values (RFC 4180). */
export function toCsvLine(values: readonly string[]): string {
  return `${values.map(toCell).join(',')}\r\n`;
}

/** A value that a spreadsheet would evaluate as a formula begins with an apostrophe. */
function toCell(value: string): string {
  const safe = printable(/^[=+\-@]/.test(value) ? `'${value}` : value);
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
