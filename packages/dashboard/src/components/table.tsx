import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';
import { EmptyState } from './states.tsx';
import styles from './table.module.css';

export interface Column<Item> {
  /** Heading; on narrow screens it is before each cell. An empty one is for buttons. */
  readonly label: string;
  readonly cell: (item: Item) => ReactNode;
  /** A line below the cell, in small grey letters. */
  readonly detail?: (item: Item) => ReactNode;
  /** True for the name of an item: on narrow screens it needs no heading. */
  readonly isName?: boolean;
  /** True for a cell that stays on one line, in grey. */
  readonly isSecondary?: boolean;
  /** Value of the URL for the order by this column; with `-` before it, descending. */
  readonly sort?: string;
  /** True if the first click sorts descending, such as for times. */
  readonly descends?: boolean;
}

interface Sorting {
  readonly value: string;
  readonly onSort: (sort: string) => void;
}

interface TableProps<Item> {
  /** Name of the items, for screen readers. */
  readonly caption: string;
  readonly columns: ReadonlyArray<Column<Item>>;
  readonly items: readonly Item[];
  /** Needed if a column has `sort`. */
  readonly sorting?: Sorting;
}

/** A table; on narrow screens a list. {@link rowLink} makes a whole row a link. */
export function Table<Item extends { readonly id: string }>({ caption, columns, items, sorting }: TableProps<Item>) {
  return (
    <div className={styles.wrapper}>
      <table className={styles.table}>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, sort, descends = false }) =>
              sort && sorting ? (
                <SortHeading key={label} label={label} sort={sort} descends={descends} {...sorting} />
              ) : (
                <th key={label} scope="col">
                  {label === '' ? <span className="visually-hidden">Actions</span> : label}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.id}>
              {columns.map(({ label, cell, detail, isName, isSecondary }) => (
                <td
                  key={label}
                  data-label={isName || label === '' ? undefined : label}
                  className={isSecondary ? styles.secondary : undefined}
                >
                  <Cell text={cell(item)} detail={detail?.(item)} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ text, detail }: { readonly text: ReactNode; readonly detail: ReactNode }) {
  if (!detail) return text;
  return (
    <span className="lines">
      {text}
      <span className="muted small">{detail}</span>
    </span>
  );
}

type SortHeadingProps = Sorting & Required<Pick<Column<never>, 'label' | 'sort' | 'descends'>>;

function SortHeading({ label, sort, descends, value, onSort }: SortHeadingProps) {
  const isDescending = value === `-${sort}`;
  const isSorted = isDescending || value === sort;
  const next = isSorted ? !isDescending : descends;
  return (
    <th scope="col" aria-sort={isSorted ? (isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" className={`${styles.sort} plain`} onClick={() => onSort(next ? `-${sort}` : sort)}>
        {label} {isSorted && <Icon name={isDescending ? 'chevronDown' : 'chevronUp'} size={12} />}
      </button>
    </th>
  );
}

export const rowLink = styles.rowLink;

interface PaginationProps {
  /** Counts from 1. */
  readonly page: number;
  readonly totalPages: number;
  readonly onPage: (page: number) => void;
}

export function Pagination({ page, totalPages, onPage }: PaginationProps) {
  if (totalPages > 0 && page > totalPages)
    return (
      <EmptyState
        icon="search"
        title="This page is empty"
        action={<Button onClick={() => onPage(totalPages)}>Go to the last page</Button>}
      >
        What it showed was deleted.
      </EmptyState>
    );
  if (totalPages <= 1) return null;
  return (
    <nav className={`${styles.pages} between muted`} aria-label="Pages">
      <span aria-live="polite">
        Page {page} of {totalPages}
      </span>
      <span className="cluster">
        <Button small icon="chevronLeft" disabled={page <= 1} onClick={() => onPage(page - 1)}>
          Previous
        </Button>
        <Button small disabled={page >= totalPages} onClick={() => onPage(page + 1)}>
          Next
        </Button>
      </span>
    </nav>
  );
}
