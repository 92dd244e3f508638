import { lazy, type ReactNode, Suspense, useState } from 'react';

export interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  readonly description?: ReactNode;
  readonly wide?: boolean | undefined;
  /** Whether a click beside it leaves it open, as inputs would be lost. */
  readonly stays?: boolean | undefined;
  /** Mounted while it is open, so that inputs begin empty. */
  readonly children: ReactNode;
}

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
