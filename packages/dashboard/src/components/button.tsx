import type { ComponentPropsWithRef, SyntheticEvent } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './button.module.css';
import { Icon, type IconName } from './icon.tsx';

interface ButtonStyle {
  readonly variant?: 'primary' | 'secondary' | 'ghost' | 'danger' | 'dangerOutline' | undefined;
  readonly small?: boolean | undefined;
  readonly wide?: boolean | undefined;
}

/** The classes of a button, for links that look like one. */
export function buttonClass({ variant = 'secondary', small, wide }: ButtonStyle = {}): string {
  return classes(styles.button, variant !== 'secondary' && styles[variant], small && styles.small, wide && styles.wide);
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
      className={buttonClass({ variant, small, wide })}
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

type IconButtonProps = Omit<ComponentPropsWithRef<'button'>, 'className' | 'aria-label' | 'title' | 'children'> & {
  /** Purpose, as a tooltip and for screen readers. */
  readonly label: string;
  readonly icon: IconName;
  readonly small?: boolean | undefined;
};

export function IconButton({ label, icon, small, ...props }: IconButtonProps) {
  return (
    <button
      type="button"
      {...props}
      aria-label={label}
      title={label}
      className={classes(styles.button, styles.ghost, styles.icon, small && styles.small)}
    >
      <Icon name={icon} />
    </button>
  );
}
