import { lazy, Suspense } from 'react';
import type { MenuProps } from './menu-popup.tsx';

const importPopup = () => import('./menu-popup.tsx');
const Popup = lazy(() => importPopup().then(({ MenuPopup }) => ({ default: MenuPopup })));

/** A menu of actions. Its code is loaded after the page: until then its button does nothing. */
export function Menu(props: MenuProps) {
  return (
    <Suspense fallback={props.trigger}>
      <Popup {...props} />
    </Suspense>
  );
}

export const MenuItem = lazy(() => importPopup().then(({ MenuPopupItem }) => ({ default: MenuPopupItem })));
export const MenuChoices = lazy(() => importPopup().then(({ MenuPopupChoices }) => ({ default: MenuPopupChoices })));
