import { Toast } from '@base-ui/react/toast';
import { useEffect } from 'react';
import { Button, IconButton } from '../components/button.tsx';
import { Icon } from '../components/icon.tsx';
import styles from './toast-region.module.css';
import { showToasts, toastManager } from './toasts.ts';

const SHOWN_MS = 5_000;

/** The region of toasts. F6 moves the focus there. */
export function ToastRegion() {
  useEffect(showToasts, []);
  return (
    <Toast.Provider toastManager={toastManager} timeout={SHOWN_MS} limit={4}>
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport}>
          <Toasts />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function Toasts() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((item) => (
    <Toast.Root key={item.id} toast={item} className={`${styles.toast} message raised`}>
      <Icon name={item.type === 'failure' ? 'warning' : 'check'} />
      <Toast.Content className="grow">
        <Toast.Title className="bold" render={<p />} />
        <Toast.Description className="muted" />
      </Toast.Content>
      <Toast.Action render={<Button small />} />
      <Toast.Close render={<IconButton small label="Dismiss" icon="close" />} />
    </Toast.Root>
  ));
}
