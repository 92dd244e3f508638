import { Fragment } from 'react';
import { Dialog } from '../components/dialog.tsx';
import styles from './palette.module.css';
import { SHORTCUTS } from './shortcuts.ts';

export function ShortcutsDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts">
      <dl className={styles.shortcuts}>
        {SHORTCUTS.map(([keys, effect]) => (
          <Fragment key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
