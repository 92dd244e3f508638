import type { AuditEntry } from '@latchkey/client';
import { AUDIT_CSV_HEADINGS, toAuditCsvCells, toCsvLine } from '@latchkey/contract/audit-csv';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { type AuditFilter, toAuditQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { downloadText } from '../../download/download.ts';
import { toast } from '../../toast/toasts.ts';
import styles from './audit-log.module.css';

/** Buttons that download the entries that the filter selects. */
export function ExportButtons({ filter }: { readonly filter: AuditFilter }) {
  const [count, setCount] = useState(0);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const exporting = useMutation({
    mutationFn: (format: Format) => {
      setCount(0);
      running.current = new AbortController();
      return exportEntries(filter, format, { signal: running.current.signal, onProgress: setCount });
    },
    onSuccess: (done) =>
      done.isCut
        ? toast.failure(
            `The file has the ${EXPORT_MAX.toLocaleString('en')} newest entries`,
            'Choose an application or an action to export others.',
          )
        : toast.success('Audit log exported', done.count === 1 ? '1 entry' : `${done.count.toLocaleString('en')} entries`),
    onError: (error) => running.current?.signal.aborted || toast.error('The audit log was not exported', error),
  });
  return (
    <div className={`${styles.exports} cluster`}>
      {exporting.isPending ? (
        <>
          <span role="status">{count.toLocaleString('en')} entries…</span>
          <Button onClick={() => running.current?.abort()}>Cancel export</Button>
        </>
      ) : (
        (['csv', 'json'] as const).map((format) => (
          <Button
            key={format}
            icon="download"
            aria-label={`Export ${format.toUpperCase()}`}
            onClick={() => exporting.mutate(format)}
          >
            {format.toUpperCase()}
          </Button>
        ))
      )}
    </div>
  );
}

/** More would fill the memory of a phone. */
const EXPORT_MAX = 50_000;

export type Format = 'csv' | 'json';

/**
 * Downloads the entries as a file.
 * @param onProgress gets how many entries have been read
 * @returns how many entries the file has, and whether there are more
 */
async function exportEntries(
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
