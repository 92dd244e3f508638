import { Menu as BaseMenu } from '@base-ui/react/menu';
import type { ReactElement, ReactNode } from 'react';
import { Icon, type IconName } from './icon.tsx';
import styles from './menu.module.css';

export interface MenuProps {
  readonly trigger: ReactElement;
  /** Mounted while it is open. */
  readonly children: ReactNode;
}

export function MenuPopup({ trigger, children }: MenuProps) {
  return (
    <BaseMenu.Root modal={false}>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={styles.positioner} align="start" sideOffset={6} collisionPadding={8}>
          <BaseMenu.Popup className={styles.popup}>{children}</BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

interface MenuItemProps {
  readonly icon: IconName;
  readonly onSelect: () => void;
  readonly children: ReactNode;
}

export function MenuPopupItem({ icon, onSelect, children }: MenuItemProps) {
  return (
    <BaseMenu.Item className={styles.item} onClick={onSelect}>
      <Icon name={icon} />
      {children}
    </BaseMenu.Item>
  );
}

interface MenuChoicesProps {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
  readonly onChoose: (value: string) => void;
}

/** One of several, of which the chosen one is marked. */
export function MenuPopupChoices({ labels, value, onChoose }: MenuChoicesProps) {
  return (
    <BaseMenu.RadioGroup value={value} onValueChange={onChoose}>
      {Object.entries(labels).map(([item, label]) => (
        <BaseMenu.RadioItem key={item} value={item} className={styles.item} closeOnClick>
          <Icon name={item === value ? 'check' : 'sun'} />
          {label}
        </BaseMenu.RadioItem>
      ))}
    </BaseMenu.RadioGroup>
  );
}
