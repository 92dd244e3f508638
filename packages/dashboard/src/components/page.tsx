import { type ReactNode, useId, useLayoutEffect } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './page.module.css';

interface PageHeaderProps {
  readonly title: string;
  /** Part of the thing that is shown, for the title of the browser. */
  readonly part?: string | undefined;
  readonly description?: ReactNode;
  /** The primary action, and a menu for others. */
  readonly action?: ReactNode;
}

export function PageHeader({ title, part, description, action }: PageHeaderProps) {
  return (
    <header className={`${styles.header} between`}>
      <Title>{part === undefined ? title : `${part} · ${title}`}</Title>
      <div className={styles.titles}>
        {/* The name of a thing may be in any script and direction. */}
        <h1 className={styles.title} tabIndex={-1} dir="auto">
          {title}
        </h1>
        {description && <div className={classes(styles.description, 'muted')}>{description}</div>}
      </div>
      {action && <div className="cluster">{action}</div>}
    </header>
  );
}

interface SectionProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly dangerous?: boolean;
  readonly children: ReactNode;
}

/** A part of a page in a frame. */
export function Section({ title, description, dangerous, children }: SectionProps) {
  const id = useId();
  return (
    <section className={classes(styles.section, 'stack frame', dangerous && styles.dangerous)} aria-labelledby={id}>
      <div>
        <h2 id={id}>{title}</h2>
        {description && <div className={classes(styles.description, 'muted')}>{description}</div>}
      </div>
      {children}
    </section>
  );
}

/** Rows of a section, with lines between them. */
export function Rows({ as: Element = 'div', children }: { readonly as?: 'div' | 'ul'; readonly children: ReactNode }) {
  return <Element className={styles.rows}>{children}</Element>;
}

interface RowProps {
  readonly as?: 'div' | 'li';
  /** Id of the name. That of the hint ends in `-hint`. */
  readonly id?: string;
  readonly name: ReactNode;
  readonly title?: string | undefined;
  readonly hint: ReactNode;
  /** Before the name. */
  readonly image?: ReactNode;
  /** Value or action, at the end. */
  readonly children: ReactNode;
}

/** A thing with an explanation, and what can be done with it. */
export function Row({ as: Element = 'div', id, name, title, hint, image, children }: RowProps) {
  return (
    <Element className={`${styles.row} between`}>
      <div className={`${styles.text} line grow`}>
        {image}
        <div className="grow">
          <p id={id} className="cluster strong" title={title}>
            {name}
          </p>
          <p id={id && `${id}-hint`} className="muted">
            {hint}
          </p>
        </div>
      </div>
      {children}
    </Element>
  );
}

/** Search and filters above a table. */
export const Toolbar = ({ children }: { readonly children: ReactNode }) => (
  <div className={classes(styles.toolbar, 'cluster')}>{children}</div>
);

interface BadgeProps {
  readonly kind?: 'neutral' | 'success' | 'warning' | 'danger';
  readonly children: ReactNode;
}

/** A state in one or two words. */
export function Badge({ kind = 'neutral', children }: BadgeProps) {
  return (
    <span className={styles.badge} data-tone={kind}>
      {children}
    </span>
  );
}

export function StatusBadge({ status }: { readonly status: 'online' | 'paused' }) {
  return status === 'online' ? <Badge kind="success">Online</Badge> : <Badge kind="warning">Paused</Badge>;
}

/** Title of the browser's tab while a page is shown: Preact moves no `title` to the head. */
export function Title({ children }: { readonly children: string }) {
  useLayoutEffect(() => {
    document.title = `${children} · Latchkey`;
  }, [children]);
  return null;
}
