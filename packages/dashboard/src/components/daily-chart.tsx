import styles from './daily-chart.module.css';
import { type Column, Table } from './table.tsx';
import { Line } from './usage-meter.tsx';

const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
const formatDay = (date: string) => dayFormat.format(new Date(date));
const formatCount = (count: number) => count.toLocaleString('en');

/** Share of the height that the smallest bar has, so that it is seen. */
const HEIGHT_MIN = 0.04;

type Day = { readonly date: string } & Readonly<Record<string, number | string>>;

interface DailyChartsProps<D extends Day> {
  /** Name of what is counted, for screen readers. */
  readonly caption: string;
  /** Oldest first. */
  readonly days: readonly D[];
  /** Counts by their headings: those with a chart, and others of the table. */
  readonly charts: Readonly<Record<string, keyof D & string>>;
  readonly others?: Readonly<Record<string, keyof D & string>>;
}

/** Bars of each day, and a table of the days with any. */
export function DailyCharts<D extends Day>({ caption, days, charts, others = {} }: DailyChartsProps<D>) {
  const headings = { ...charts, ...others };
  const fields = Object.values(headings);
  const items = days
    .filter((day) => fields.some((field) => Number(day[field]) > 0))
    .map((day) => ({ ...day, id: day.date }))
    .reverse();
  const columns: Array<Column<D>> = [
    { label: 'Day (UTC)', isName: true, cell: ({ date }) => formatDay(date) },
    ...Object.entries(headings).map(([label, field]) => ({ label, cell: (day: D) => formatCount(Number(day[field])) })),
  ];
  return (
    <>
      {Object.entries(charts).map(([label, field]) => (
        <Chart key={label} label={label} days={days.map((day) => [day.date, Number(day[field])])} />
      ))}
      {items.length > 0 && (
        <details className={styles.details}>
          <summary>Show as a table</summary>
          <Table caption={caption} columns={columns} items={items} />
        </details>
      )}
    </>
  );
}

function Chart({
  label,
  days,
}: {
  readonly label: string;
  readonly days: ReadonlyArray<readonly [date: string, count: number]>;
}) {
  const counts = days.map(([, count]) => count);
  const max = Math.max(...counts);
  const sum = counts.reduce((total, count) => total + count, 0);
  const line = <Line name={label} value={`${formatCount(sum)} in ${days.length} days`} />;
  if (sum === 0) return line;
  return (
    <figure className={styles.chart}>
      <figcaption>{line}</figcaption>
      {/* The table has the numbers. */}
      <svg className={styles.bars} viewBox={`0 0 ${days.length} 1`} preserveAspectRatio="none" aria-hidden="true">
        {days.map(([date, count], i) => {
          const height = count === 0 ? 0 : Math.max(HEIGHT_MIN, count / max);
          return (
            <g key={date}>
              <title>{`${formatDay(date)}: ${formatCount(count)}`}</title>
              <rect className={styles.day} x={i} width={1} height={1} />
              <rect className={styles.bar} x={i + 0.1} width={0.8} y={1 - height} height={height} />
            </g>
          );
        })}
      </svg>
      <p className="between muted small" aria-hidden="true">
        {[days[0], days.at(-1)].map((day) => day && <span key={day[0]}>{formatDay(day[0])}</span>)}
      </p>
    </figure>
  );
}
