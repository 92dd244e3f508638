import { type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useRef } from 'react';
import { explainError } from '../error/explain-error.ts';
import { Button, buttonClass } from './button.tsx';
import { formatSeconds, useAttemptAt } from './countdown.tsx';
import { Icon, type IconName } from './icon.tsx';
import { RequestId } from './notice.tsx';
import styles from './states.module.css';

interface EmptyStateProps {
  readonly icon: IconName;
  readonly title: string;
  /** True if it is all of the page, whose heading it then has. */
  readonly page?: boolean | undefined;
  readonly role?: 'alert';
  readonly children: ReactNode;
  /** A button to begin, or next to "Try again". */
  readonly action?: ReactNode;
}

export function EmptyState({ icon, title, page, role, children, action }: EmptyStateProps) {
  const Heading = page ? 'h1' : 'h2';
  return (
    <div className={styles.state} role={role}>
      <Icon name={icon} size={28} />
      <Heading>{title}</Heading>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** In place of a page that does not exist. */
export const NotFound = ({ title, children }: Pick<EmptyStateProps, 'title' | 'children'>) => (
  <EmptyState
    page
    icon="search"
    title={title}
    action={
      <Link to="/applications" className={buttonClass({ variant: 'primary' })}>
        Go to applications
      </Link>
    }
  >
    {children}
  </EmptyState>
);

interface ErrorStateProps extends Pick<EmptyStateProps, 'page' | 'action'> {
  readonly error: unknown;
  readonly onRetry: () => unknown;
}

/** In place of a view that could not be loaded. Tries again by itself where the error may pass. */
export function ErrorState({ error, page, onRetry, action }: ErrorStateProps) {
  const { title, advice, requestId, retryAt, attemptAt } = explainError(error);
  const seconds = useAttemptAt(attemptAt, () => onRetry());
  return (
    <EmptyState
      role="alert"
      icon="warning"
      title={title}
      page={page}
      action={
        <>
          <Button onClick={() => onRetry()} disabled={retryAt !== undefined && seconds > 0}>
            Try again
          </Button>
          {action}
          <RequestId id={requestId} />
        </>
      }
    >
      {advice} {attemptAt !== undefined && <NextAttempt seconds={seconds} />}
    </EmptyState>
  );
}

/** Announced once, not every second. */
export const NextAttempt = ({ seconds }: { readonly seconds: number }) => (
  <span aria-live="off">{seconds > 0 ? `Trying again in ${formatSeconds(seconds)}.` : 'Trying again…'}</span>
);

interface QueryViewProps<Read, Data, Key extends QueryKey> extends Pick<ErrorStateProps, 'page' | 'action'> {
  readonly query: UseQueryOptions<Read, Error, Data, Key>;
  readonly children: (data: Data) => ReactNode;
}

/** The states of a query: skeleton, error, data. Data that is there stays when a refetch fails. */
export function QueryView<Read, Data, Key extends QueryKey>({ query, page, action, children }: QueryViewProps<Read, Data, Key>) {
  const { data, isError, error: latestError, errorUpdateCount, refetch } = useQuery(query);
  const lastError = useRef<Error>(null);
  if (data !== undefined) return children(data);
  if (isError) lastError.current = latestError;
  // The error stays while the next attempt runs.
  const error = errorUpdateCount > 0 ? lastError.current : null;
  if (error === null) return <Skeleton lines={5} />;
  return <ErrorState page={page} error={error} onRetry={refetch} action={action} />;
}

/** Grey lines in place of what loads. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div className={styles.skeleton} role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className={styles.line} />
      ))}
    </div>
  );
}
