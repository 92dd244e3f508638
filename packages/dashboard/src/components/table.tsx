import type { ReactNode } from 'react';
import styles from './table.module.css';

interface TableProps {
  /** Name of the rows, for screen readers. */
  readonly caption: string;
  /** Headings of the columns; an empty one is for buttons. */
  readonly columns: readonly string[];
  /** Rows of `<td>`: `data-label` is the heading on narrow screens. */
  readonly children: ReactNode;
}

/** A table; on narrow screens a list. {@link rowLink} makes a whole row a link. */
export function Table({ caption, columns, children }: TableProps) {
  return (
    <div className={styles.wrapper}>
      <table className={styles.table}>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column === '' ? <span className="visually-hidden">Actions</span> : column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export const rowLink = styles.rowLink;
export const secondaryCell = styles.secondary;
