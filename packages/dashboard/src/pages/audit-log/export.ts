import type { AuditEntry } from '@latchkey/client';
import { AUDIT_CSV_HEADINGS, toAuditCsvCells, toCsvLine } from '@latchkey/contract/audit-csv';
import { latchkey } from '../../api/client.ts';
import { type AuditFilter, toAuditQuery } from '../../api/queries.ts';
import { downloadText } from '../../download/download.ts';

/** More would fill the memory of a phone. */
export const EXPORT_MAX = 50_000;

export type Format = 'csv' | 'json';

/**
 * Downloads the entries as a file.
 * @param onProgress gets how many entries have been read
 * @returns how many entries the file has, and whether there are more
 */
export async function exportEntries(
  filter: AuditFilter,
  format: Format,
  { signal, onProgress }: { readonly signal: AbortSignal; readonly onProgress: (count: number) => void },
) {
  const entries: AuditEntry[] = [];
  let isCut = false;
  for await (const entry of latchkey.auditLog.iterate({ ...toAuditQuery(filter), signal })) {
    isCut = entries.length >= EXPORT_MAX;
    if (isCut) break;
    entries.push(entry);
    if (entries.length % 100 === 0) onProgress(entries.length);
  }
  const name = `latchkey-audit-log-${new Date().toISOString().slice(0, 10)}.${format}`;
  if (format === 'json') downloadText(name, 'application/json', [JSON.stringify(entries, null, 2)]);
  else
    downloadText(name, 'text/csv', [toCsvLine(AUDIT_CSV_HEADINGS), ...entries.map((entry) => toCsvLine(toAuditCsvCells(entry)))]);
  return { count: entries.length, isCut };
}
