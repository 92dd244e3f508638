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

/** Columns of the audit log as CSV, in the dashboard and on the command line. */
export const AUDIT_CSV_HEADINGS = 'at action actor credentialId address requestId subject subjectId applicationId changes'.split(
  ' ',
);

export function toAuditCsvCells({ at, action, actor, requestId, subject, applicationId, changes }: Entry): string[] {
  const { kind, credentialId, address } = actor;
  const cells = [at, action, kind, credentialId, address, requestId, subject.kind, subject.id, applicationId];
  return [...cells, JSON.stringify(changes)].map((cell) => cell ?? '');
}

/** A line of comma-separated values (RFC 4180). */
export const toCsvLine = (cells: readonly string[]): string => `${cells.map(toCell).join(',')}\r\n`;

/** A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function toCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
