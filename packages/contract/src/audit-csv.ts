/** Parts of an entry of the audit log, as the REST interface has them. */
interface Entry {
  readonly at: string;
  readonly action: string;
  readonly actor: { readonly kind: string; readonly credentialId: string | null; readonly address: string | null };
  readonly requestId: string | null;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly applicationId: string | null;
  readonly changes: object;
}

const COLUMNS: ReadonlyArray<readonly [heading: string, read: (entry: Entry) => string | null]> = [
  ['at', ({ at }) => at],
  ['action', ({ action }) => action],
  ['actor', ({ actor }) => actor.kind],
  ['credentialId', ({ actor }) => actor.credentialId],
  ['address', ({ actor }) => actor.address],
  ['requestId', ({ requestId }) => requestId],
  ['subject', ({ subject }) => subject.kind],
  ['subjectId', ({ subject }) => subject.id],
  ['applicationId', ({ applicationId }) => applicationId],
  ['changes', ({ changes }) => JSON.stringify(changes)],
];

/** Columns of the audit log as CSV, in the dashboard and on the command line. */
export const AUDIT_CSV_HEADINGS = COLUMNS.map(([heading]) => heading);

export const toAuditCsvCells = (entry: Entry): string[] => COLUMNS.map(([, read]) => read(entry) ?? '');

/** A line of comma-separated values (RFC 4180). */
export const toCsvLine = (cells: readonly string[]): string => `${cells.map(toCell).join(',')}\r\n`;

/** A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function toCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
