/**
 * A cell of RFC 4180. One that a spreadsheet would take for a formula begins with an apostrophe.
 */
export function toCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
