import type { ReactNode } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './usage-meter.module.css';

/** Shares of a limit from which its meter warns, and alarms. */
const HIGH = 0.8;
const CRITICAL = 0.95;

interface UsageMeterProps {
  /** The limited resource: "Storage". */
  readonly label: string;
  /** Unlimited with null. */
  readonly limit: { readonly currentValue: number; readonly maxValue: number | null };
  readonly unit?: string;
}

const format = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1 });

/** The used part of a limit, as text and as a bar. */
export function UsageMeter({ label, limit: { currentValue: current, maxValue: max }, unit = '' }: UsageMeterProps) {
  const text = max === null ? `${format(current)}${unit}, unlimited` : `${format(current)} of ${format(max)}${unit}`;
  return (
    <div className={styles.usage}>
      <Line name={label} value={text} />
      {max !== null && <Bar role="meter" label={label} text={text} value={current} max={max} />}
    </div>
  );
}

/** A name, and its value at the other end of the line. */
export function Line({ name, value }: { readonly name: string; readonly value: ReactNode }) {
  return (
    <p className={`${styles.line} between`}>
      <span className="strong">{name}</span>
      <span className="muted">{value}</span>
    </p>
  );
}

/** Progress; without a value, it has only begun. */
export const ProgressBar = (props: { readonly label: string; readonly value?: number; readonly max: number }) => (
  <Bar role="progressbar" {...props} />
);

interface BarProps {
  readonly role: 'meter' | 'progressbar';
  readonly label: string;
  /** The value for screen readers; a percentage without it. */
  readonly text?: string;
  readonly value?: number;
  readonly max: number;
}

/** Browsers differ in the parts of their own meters. */
function Bar({ role, label, text, value, max }: BarProps) {
  const share = (value ?? 0) / max;
  const level = role === 'meter' && (share >= CRITICAL ? styles.critical : share >= HIGH && styles.high);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles support it.
    <div
      role={role}
      className={classes(styles.bar, level)}
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuetext={text}
    >
      <div style={{ width: `${Math.min(1, share) * 100}%` }} />
      <span className="visually-hidden">{text}</span>
    </div>
  );
}
