import { CopyButton } from './copy-button.tsx';
import styles from './table.module.css';

/** An id, shortened in the middle, to copy as a whole. */
export function ShortId({ id, label = 'Copy id' }: { readonly id: string; readonly label?: string }) {
  return (
    <span className={styles.id}>
      <code title={id}>{id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id}</code>
      <CopyButton value={id} label={label} />
    </span>
  );
}
