import { notifyManager, onlineManager, useQueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { useAttemptAt } from '../components/countdown.tsx';
import { Icon } from '../components/icon.tsx';
import { NextAttempt } from '../components/states.tsx';
import { explainError, isTemporary } from '../error/explain-error.ts';
import styles from './shell.module.css';

const subscribeToOnline = (listener: () => void) => onlineManager.subscribe(listener);

/** Above every page that shows what may be out of date. */
export function ServiceNotice() {
  const queryClient = useQueryClient();
  const isOnline = useSyncExternalStore(subscribeToOnline, () => onlineManager.isOnline());
  const error = useStaleError();
  const { title, attemptAt } = explainError(error);
  const seconds = useAttemptAt(attemptAt, () =>
    queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' }),
  );
  return (
    <div role="status">
      {(error || !isOnline) && (
        <p className={`${styles.offline} line`}>
          <Icon name="offline" />
          <span>
            {isOnline ? title : 'You are offline'}. What you see may be out of date.{' '}
            {isOnline ? <NextAttempt seconds={seconds} /> : 'Changes need a connection.'}
          </span>
        </p>
      )}
    </div>
  );
}

/** Temporary error of a query that the page shows with older data. */
function useStaleError(): Error | null {
  const cache = useQueryClient().getQueryCache();
  return useSyncExternalStore(
    (listener) => cache.subscribe(notifyManager.batchCalls(listener)),
    () =>
      cache.getAll().find((query) => query.isActive() && query.state.data !== undefined && isTemporary(query.state.error))?.state
        .error ?? null,
  );
}
