import { useSyncExternalStore } from 'react';
import { Icon } from '../components/icon.tsx';
import styles from './shell.module.css';

function subscribe(listener: () => void): () => void {
  for (const event of ['online', 'offline']) addEventListener(event, listener);
  return () => {
    for (const event of ['online', 'offline']) removeEventListener(event, listener);
  };
}

const useIsOnline = () => useSyncExternalStore(subscribe, () => navigator.onLine);

export function OfflineNotice() {
  const isOnline = useIsOnline();
  return (
    <div role="status">
      {!isOnline && (
        <p className={styles.offline}>
          <Icon name="offline" /> You are offline. What you see may be out of date; changes need a connection.
        </p>
      )}
    </div>
  );
}
