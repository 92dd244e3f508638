import type { ReactNode } from 'react';
import { Icon } from './icon.tsx';
import { SelectField } from './select-field.tsx';
import styles from './table.module.css';

/** A column that rows can be sorted by. */
export interface SortColumn {
  readonly label: string;
  /** Value of the URL for this order; with `-` before it, descending. */
  readonly sort: string;
  /** True if the first click sorts descending, such as for times. */
  readonly descends?: boolean;
}

interface Sorting {
  readonly value: string;
  readonly onSort: (sort: string) => void;
}

interface TableProps {
  /** Name of the rows, for screen readers. */
  readonly caption: string;
  /** Headings of the columns; an empty one is for buttons. */
  readonly columns: ReadonlyArray<string | SortColumn>;
  readonly sorting?: Sorting;
  /** Rows of `<td>`: `data-label` is the heading on narrow screens. */
  readonly children: ReactNode;
}

/** A table; on narrow screens a list. {@link rowLink} makes a whole row a link. */
export function Table({ caption, columns, sorting, children }: TableProps) {
  return (
    <div className={styles.wrapper}>
      <table className={styles.table}>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) =>
              typeof column === 'string' ? (
                <th key={column} scope="col">
                  {column === '' ? <span className="visually-hidden">Actions</span> : column}
                </th>
              ) : (
                <SortHeading key={column.label} column={column} {...(sorting as Sorting)} />
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function SortHeading({ column: { label, sort, descends = false }, value, onSort }: { readonly column: SortColumn } & Sorting) {
  const isDescending = value === `-${sort}`;
  const isSorted = isDescending || value === sort;
  const next = isSorted ? !isDescending : descends;
  return (
    <th scope="col" aria-sort={isSorted ? (isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" className={styles.sort} onClick={() => onSort(next ? `-${sort}` : sort)}>
        {label} {isSorted && <Icon name={isDescending ? 'chevronDown' : 'chevronUp'} size={12} />}
      </button>
    </th>
  );
}

/** The order of rows on narrow screens, which have no headings. */
export function SortField({ columns, value, onSort }: { readonly columns: readonly SortColumn[] } & Sorting) {
  return (
    <div className={styles.sortField}>
      <SelectField name="sort" label="Sort by" value={value} onChange={(event) => onSort(event.currentTarget.value)}>
        {columns.flatMap(({ label, sort }) => [
          <option key={sort} value={sort}>
            {label}
          </option>,
          <option key={`-${sort}`} value={`-${sort}`}>
            {label}, descending
          </option>,
        ])}
      </SelectField>
    </div>
  );
}

export const rowLink = styles.rowLink;
export const secondaryCell = styles.secondary;
