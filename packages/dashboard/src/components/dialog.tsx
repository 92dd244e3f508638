import { lazy, Suspense, useState } from 'react';
import type { DialogProps } from './dialog-popup.tsx';

const importPopup = () => import('./dialog-popup.tsx');
const Popup = lazy(() => importPopup().then(({ DialogPopup }) => ({ default: DialogPopup })));

/** Loads what dialogs need, so that they also open without a connection. */
export const preloadDialogs = () => void importPopup().catch(() => undefined);

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
