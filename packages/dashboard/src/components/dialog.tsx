import { Suspense, useState } from 'react';
import type { DialogProps } from './dialog-popup.tsx';
import { lazyComponent } from './lazy-component.ts';

const Popup = lazyComponent(() => import('./dialog-popup.tsx'), 'DialogPopup');

/** Loads what dialogs need, so that they also open without a connection. */
export const preloadDialogs = Popup.preload;

/** A modal dialog. Escape closes it, and the focus returns to where it was. */
export function Dialog(props: DialogProps) {
  const [isUsed, setUsed] = useState(props.open);
  if (props.open && !isUsed) setUsed(true);
  if (!isUsed) return null;
  return (
    <Suspense>
      <Popup {...props} />
    </Suspense>
  );
}
