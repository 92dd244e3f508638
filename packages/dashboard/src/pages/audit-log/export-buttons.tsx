import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { AuditFilter } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { toast } from '../../toast/toasts.ts';
import styles from './audit-log.module.css';
import { EXPORT_MAX, exportEntries, type Format } from './export.ts';

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
