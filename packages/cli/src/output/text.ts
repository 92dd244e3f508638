import stringWidth from 'fast-string-width';

/** Escapes control characters, which a terminal would interpret. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}

export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** JSON on one line, or indented. The escapes of {@link printable} are those of JSON, too. */
export function toJson(value: unknown, indent?: number): string {
  return printableLines(String(JSON.stringify(value, null, indent)));
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const kib = bytes / 1_024;
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}

/** A part of a whole, in the unit of the whole: `29.0 of 51.7 MiB`. */
export function formatPart(part: number, whole: number): string {
  const [, unit = 'B'] = formatBytes(whole).split(' ');
  const divisor = { B: 1, KiB: 1_024 }[unit] ?? 1_048_576;
  return `${(part / divisor).toFixed(unit === 'B' ? 0 : 1)} of ${formatBytes(whole)}`;
}

/** In UTC, to the minute: `2026-05-12 09:00`. */
export function formatTime(iso: string | null | undefined): string {
  return iso ? iso.slice(0, 16).replace('T', ' ') : 'never';
}

/** Shortens in the middle, so that the beginning and a file's extension stay. */
export function shorten(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  const chars = [...text];
  const half = Math.floor((width - 1) / 2);
  // Wide characters take two columns.
  const widthMax = stringWidth(text) > chars.length ? Math.floor(half / 2) : half;
  return `${chars.slice(0, widthMax + ((width - 1) % 2)).join('')}…${chars.slice(chars.length - widthMax).join('')}`;
}

/**
 * Aligned columns.
 *
 * @param columns of the terminal: the widest column is shortened to fit; undefined shortens nothing
 * @param style colours the headings
 */
export function formatTable(
  rows: readonly (readonly string[])[],
  options: { headings?: readonly string[]; columns?: number | undefined; style?: (text: string) => string },
): string {
  const { headings = [], columns = Number.POSITIVE_INFINITY, style = (text) => text } = options;
  const cells = [headings, ...rows].filter((row) => row.length > 0).map((row) => row.map(printable));
  const widths = (cells[0] ?? []).map((_, i) => Math.max(...cells.map((row) => stringWidth(row[i] ?? ''))));
  const total = widths.reduce((sum, width) => sum + width + 2, -2);
  const widest = widths.indexOf(Math.max(...widths));
  if (total > columns) widths[widest] = Math.max(10, (widths[widest] ?? 0) - (total - columns));
  const lines = cells.map((row) => row.map((cell, i) => pad(cell, widths[i] ?? 0)).join('  '));
  return lines.map((line, i) => `${i === 0 && headings.length > 0 ? style(line.trimEnd()) : line.trimEnd()}\n`).join('');
}

export function pad(cell: string, width: number): string {
  const text = shorten(cell, width);
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)));
}
