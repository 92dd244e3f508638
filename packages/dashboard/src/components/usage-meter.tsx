import styles from './usage-meter.module.css';

/** Shares of a limit from which its meter warns, and alarms. */
const HIGH = 0.8;
const CRITICAL = 0.95;

interface UsageMeterProps {
  /** The limited resource: "Storage". */
  readonly label: string;
  readonly current: number;
  /** null: unlimited. */
  readonly max: number | null;
  readonly unit?: string;
}

const format = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1 });

/** The used part of a limit, as text and as a bar. */
export function UsageMeter({ label, current, max, unit = '' }: UsageMeterProps) {
  const text = max === null ? `${format(current)}${unit}, unlimited` : `${format(current)} of ${format(max)}${unit}`;
  return (
    <div className={styles.usage}>
      <p className={styles.line}>
        <span>{label}</span>
        <span className={styles.value}>{text}</span>
      </p>
      {max !== null && (
        <meter
          className={styles.meter}
          aria-label={label}
          value={current}
          max={max}
          low={max * HIGH}
          high={max * CRITICAL}
          optimum={0}
        >
          {text}
        </meter>
      )}
    </div>
  );
}

/** Progress; without a value, it has only begun. */
export function ProgressBar({ label, value, max }: { readonly label: string; readonly value?: number; readonly max: number }) {
  return <progress className={styles.progress} aria-label={label} max={max} {...(value !== undefined && { value })} />;
}
