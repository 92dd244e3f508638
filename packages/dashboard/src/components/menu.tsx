import {
  type ComponentProps,
  cloneElement,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
  useEffect,
  useRef,
  useState,
} from 'react';
import { Icon, type IconName } from './icon.tsx';
import styles from './menu.module.css';

interface MenuProps {
  readonly label: string;
  readonly trigger: ReactElement<ComponentProps<'button'>>;
  /** Mounted while it is open. */
  readonly children: ReactNode;
}

/** A menu above its button, with the keys of the ARIA pattern. The end of its focus closes it. */
export function Menu({ label, trigger, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const find = (selector: string) => [...(root.current?.querySelectorAll<HTMLElement>(selector) ?? [])];
  useEffect(() => {
    if (isOpen) root.current?.querySelector<HTMLElement>('[role^="menuitem"]')?.focus();
  }, [isOpen]);
  const close = () => {
    find('[aria-haspopup]')[0]?.focus();
    setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const items = find('[role^="menuitem"]');
    const focused = items.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Escape') close();
    else if (focused >= 0 && moveFocus(items, focused, event.key)) event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it listens to its button and its items.
    <div
      ref={root}
      className={styles.menu}
      onKeyDown={onKeyDown}
      onBlur={({ relatedTarget }) => root.current?.contains(relatedTarget) || setOpen(false)}
    >
      {cloneElement(trigger, { 'aria-haspopup': 'menu', 'aria-expanded': isOpen, onClick: () => setOpen(!isOpen) })}
      {isOpen && (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the items are buttons.
        <div role="menu" tabIndex={-1} aria-label={label} className={`${styles.popup} raised`} onClick={close}>
          {children}
        </div>
      )}
    </div>
  );
}

/** Focuses the item that a key leads to: the next, the first, or one with this initial. */
function moveFocus(items: readonly HTMLElement[], focused: number, key: string): boolean {
  const targets: Readonly<Record<string, number>> = { ArrowDown: focused + 1, ArrowUp: focused - 1, Home: 0, End: -1 };
  const hasInitial = (item: HTMLElement) => item.textContent?.trim().toLowerCase().startsWith(key.toLowerCase());
  const found = key.length === 1 && key !== ' ' ? [...items.slice(focused + 1), ...items].find(hasInitial) : undefined;
  const index = targets[key];
  const target = index === undefined ? found : items.at(index % items.length);
  target?.focus();
  return target !== undefined;
}

interface MenuItemProps {
  readonly icon: IconName;
  /** Of one of several choices: true for the chosen one. */
  readonly checked?: boolean;
  readonly onSelect: () => void;
  readonly children: ReactNode;
}

export function MenuItem({ icon, checked, onSelect, children }: MenuItemProps) {
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: only a choice has it.
    <button
      type="button"
      role={checked === undefined ? 'menuitem' : 'menuitemradio'}
      aria-checked={checked}
      tabIndex={-1}
      className={`${styles.item} plain item`}
      onClick={onSelect}
    >
      <Icon name={checked ? 'check' : icon} />
      {children}
    </button>
  );
}
