import { Menu as BaseMenu } from '@base-ui/react/menu';
import { classes } from './classes.ts';
import { Icon } from './icon.tsx';
import styles from './menu.module.css';
import type { MenuItemProps, MenuProps } from './menu.tsx';

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
