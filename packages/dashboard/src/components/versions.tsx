import { Notice } from './notice.tsx';
import styles from './versions.module.css';

interface VersionsProps {
  readonly title: string;
  /** Lines of what others saved. */
  readonly saved: readonly string[];
  /** Lines of what the person wants to save. */
  readonly own: readonly string[];
}

/** Both versions of what others changed while it was edited. */
export function Versions({ title, saved, own }: VersionsProps) {
  return (
    <Notice kind="warning" title={title}>
      <dl className={styles.versions}>
        <dt>Saved now</dt>
        <Lines lines={saved} />
        <dt>Yours</dt>
        <Lines lines={own} />
      </dl>
    </Notice>
  );
}

function Lines({ lines }: { readonly lines: readonly string[] }) {
  return lines.map((line) => (
    <dd key={line} dir="auto">
      {line}
    </dd>
  ));
}
