import { Dialog as BaseDialog } from '@base-ui/react/dialog';
import type { ReactNode } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './dialog.module.css';

export interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  readonly description?: ReactNode;
  readonly wide?: boolean | undefined;
  /** True if a click outside leaves it open, as inputs would be lost. */
  readonly stays?: boolean | undefined;
  /** Mounted while it is open, so that inputs begin empty. */
  readonly children: ReactNode;
}

export function DialogPopup({ open, onClose, title, description, wide, stays = false, children }: DialogProps) {
  return (
    <BaseDialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()} disablePointerDismissal={stays}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={styles.backdrop} />
        <BaseDialog.Popup className={classes(styles.popup, 'raised stack', wide && styles.wide)}>
          <BaseDialog.Title className={styles.title}>{title}</BaseDialog.Title>
          {description && (
            <BaseDialog.Description className="muted" render={<div />}>
              {description}
            </BaseDialog.Description>
          )}
          {children}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}
