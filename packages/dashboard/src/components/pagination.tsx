import { Button } from './button.tsx';
import { EmptyState } from './states.tsx';
import styles from './table.module.css';

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
