import { Menu as BaseMenu } from '@base-ui/react/menu';
import type { ReactElement, ReactNode } from 'react';
import { classes } from './classes.ts';
import { Icon, type IconName } from './icon.tsx';
import styles from './menu.module.css';

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

export function MenuPopup({ trigger, align = 'end', children }: MenuProps) {
  return (
    <BaseMenu.Root modal={false}>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={styles.positioner} align={align} sideOffset={6} collisionPadding={8}>
          <BaseMenu.Popup className={styles.popup}>{children}</BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

export function MenuPopupItem({ icon, danger, onSelect, render, children }: MenuItemProps) {
  return (
    <BaseMenu.Item className={classes(styles.item, danger && styles.danger)} onClick={onSelect} {...(render && { render })}>
      {icon && <Icon name={icon} />}
      {children}
    </BaseMenu.Item>
  );
}
