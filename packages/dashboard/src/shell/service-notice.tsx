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
  const isOnline = useSyncExternalStore(subscribeToOnline, () => onlineManager.isOnline());
  const error = useStaleError();
  return (
    <div role="status">
      {!isOnline && (
        <p className={styles.offline}>
          <Icon name="offline" /> You are offline. What you see may be out of date; changes need a connection.
        </p>
      )}
      {isOnline && error && <Unreachable error={error} />}
    </div>
  );
}

function Unreachable({ error }: { readonly error: Error }) {
  const queryClient = useQueryClient();
  const { title, attemptAt } = explainError(error);
  const seconds = useAttemptAt(attemptAt, () =>
    queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' }),
  );
  return (
    <p className={styles.offline}>
      <Icon name="offline" />
      <span>
        {title}. What you see may be out of date. <NextAttempt seconds={seconds} />
      </span>
    </p>
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
