import { useInterval } from './countdown.tsx';

const UNITS = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

const REFRESH_MS = 30_000;

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export const formatExact = (at: string) => exact.format(new Date(at));

function formatRelative(at: string): string {
  const seconds = Math.round((Date.parse(at) - Date.now()) / 1_000);
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return seconds > 0 ? 'in less than a minute' : 'just now';
}

/** "3 hours ago", with the exact time on hover and for screen readers. */
export function RelativeTime({ at }: { readonly at: string }) {
  useInterval(REFRESH_MS);
  return (
    <time dateTime={at} title={formatExact(at)}>
      {formatRelative(at)}
      <span className="visually-hidden"> ({formatExact(at)})</span>
    </time>
  );
}
