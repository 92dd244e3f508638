import type { ComponentPropsWithRef, SyntheticEvent } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './button.module.css';
import { Icon, type IconName } from './icon.tsx';

interface ButtonStyle {
  readonly variant?: 'primary' | 'secondary' | 'ghost' | 'danger' | 'dangerOutline' | undefined;
  readonly small?: boolean | undefined;
  readonly wide?: boolean | undefined;
  /** As wide as high, for an icon alone. */
  readonly square?: boolean | undefined;
}

/** The classes of a button, for links that look like one. */
export function buttonClass({ variant = 'secondary', small, wide, square }: ButtonStyle = {}): string {
  const sizes = [small && styles.small, wide && styles.wide, square && styles.icon];
  return classes(styles.button, variant !== 'secondary' && styles[variant], ...sizes);
}

type ButtonProps = Omit<ComponentPropsWithRef<'button'>, 'className'> &
  ButtonStyle & {
    readonly icon?: IconName | undefined;
    /** While its action runs: it stays focused and does nothing. */
    readonly pending?: boolean | undefined;
  };

export function Button({
  variant,
  small,
  wide,
  square,
  icon,
  pending = false,
  children,
  onClick,
  type = 'button',
  ...props
}: ButtonProps) {
  return (
    <button
      {...props}
      type={type}
      className={buttonClass({ variant, small, wide, square })}
      aria-disabled={pending || undefined}
      aria-busy={pending || undefined}
      // Enter in a form clicks its submit button too.
      onClick={pending ? preventDefault : onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

const preventDefault = (event: SyntheticEvent) => event.preventDefault();

/** Begins to create what a page lists. */
export const CreateButton = (props: Pick<ButtonProps, 'onClick' | 'children'>) => (
  <Button variant="primary" icon="plus" {...props} />
);

interface IconButtonProps extends Omit<ButtonProps, 'aria-label' | 'title' | 'children'> {
  /** Purpose, as a tooltip and for screen readers. */
  readonly label: string;
  readonly icon: IconName;
}

export const IconButton = ({ label, ...button }: IconButtonProps) => (
  <Button variant="ghost" square {...button} aria-label={label} title={label} />
);
