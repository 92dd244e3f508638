import { lazy, type ReactElement, type ReactNode, Suspense } from 'react';
import type { IconName } from './icon.tsx';

export interface MenuProps {
  /** The button that opens it. */
  readonly trigger: ReactElement;
  readonly align?: 'start' | 'end';
  readonly children: ReactNode;
}

export interface MenuItemProps {
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly onSelect?: () => void;
  /** The element to be, such as a link. */
  readonly render?: ReactElement;
  readonly children: ReactNode;
}

const Popup = lazy(() => import('./menu-popup.tsx').then(({ MenuPopup }) => ({ default: MenuPopup })));

/** A menu of actions. Its code is loaded after the page: until then its button does nothing. */
export function Menu(props: MenuProps) {
  return (
    <Suspense fallback={props.trigger}>
      <Popup {...props} />
    </Suspense>
  );
}

export const MenuItem = lazy(() => import('./menu-popup.tsx').then(({ MenuPopupItem }) => ({ default: MenuPopupItem })));
