import type { ReactNode } from 'react';
import styles from './row.module.css';

/** Rows of a section, with lines between them. */
export function Rows({ as: Element = 'div', children }: { readonly as?: 'div' | 'ul'; readonly children: ReactNode }) {
  return <Element className={styles.rows}>{children}</Element>;
}

interface RowProps {
  readonly as?: 'div' | 'li';
  /** Id of the name. That of the hint ends in `-hint`. */
  readonly id?: string;
  readonly name: ReactNode;
  readonly title?: string | undefined;
  readonly hint: ReactNode;
  /** Before the name. */
  readonly image?: ReactNode;
  /** Value or action, at the end. */
  readonly children: ReactNode;
}

/** A thing with an explanation, and what can be done with it. */
export function Row({ as: Element = 'div', id, name, title, hint, image, children }: RowProps) {
  return (
    <Element className={`${styles.row} between`}>
      <div className={`${styles.text} grow`}>
        {image}
        <div className="grow">
          <p id={id} className="cluster strong" title={title}>
            {name}
          </p>
          <p id={id && `${id}-hint`} className="muted">
            {hint}
          </p>
        </div>
      </div>
      {children}
    </Element>
  );
}
