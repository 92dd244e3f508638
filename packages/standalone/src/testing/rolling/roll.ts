import { eventually } from '@latchkey/testkit/eventually';
import type { FleetProcess } from '../fleet/fleet.ts';
import type { Tally } from './book.ts';
import { SLOW_UPLOADS } from './clients.ts';
import type { RollingLoad } from './rolling-load.ts';

/** What was seen while one process was restarted. */
export interface Restart {
  readonly name: string;
  readonly exit: string;
  readonly stopMs: number;
  readonly startMs: number;
  readonly tallies: ReadonlyMap<string, Tally>;
  /** Slow uploads that had begun when it was told to stop. */
  readonly uploading: number;
  /** Codes that sockets were closed with, and from the first to the last of them in milliseconds. */
  readonly closes: readonly number[];
  readonly closesMs: number;
  /** How long it took until all sockets were connected again and had heard everything. */
  readonly caughtUpMs: number;
  readonly flaws: readonly string[];
}

const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };

/** Restarts one process under load as a rollout does, and waits until all is as it was. */
export async function restartUnder(load: RollingLoad, process: FleetProcess): Promise<Restart> {
  const { sockets, book } = load;
  const [closesBefore, flawsBefore] = [sockets.closes.length, sockets.flaws.length];
  book.turnPage();
  const uploading = book.underWay(SLOW_UPLOADS);
  const startedAt = performance.now();
  const { code, signal } = await process.stop();
  const stoppedAt = performance.now();
  await process.start();
  const readyAt = performance.now();
  const heard = Math.max(...sockets.members.map(({ last }) => last));
  await eventually(
    () => sockets.connected === sockets.members.length && sockets.caughtUp(heard) === sockets.members.length,
    PATIENCE,
  );
  const closes = sockets.closes
    .slice()
    .sort((a, b) => a.at - b.at)
    .slice(closesBefore);
  return {
    name: process.name,
    exit: String(code ?? signal),
    stopMs: stoppedAt - startedAt,
    startMs: readyAt - stoppedAt,
    tallies: book.turnPage(),
    uploading,
    closes: closes.map((close) => close.code),
    closesMs: closes.length === 0 ? 0 : (closes.at(-1)?.at ?? 0) - (closes[0]?.at ?? 0),
    caughtUpMs: performance.now() - readyAt,
    flaws: sockets.flaws.slice(flawsBefore),
  };
}

/** The restarts as a table in Markdown. */
export function tableOf(restarts: readonly Restart[]): string {
  const kinds = [...new Set(restarts.flatMap(({ tallies }) => [...tallies.keys()]))];
  const head = [
    'process',
    ...kinds.map((kind) => `${kind} (failed)`),
    'stop, s',
    'start, s',
    'sockets closed',
    'spread, ms',
    'caught up, s',
    'missed',
  ];
  const rows = restarts.map((one) => [
    one.name,
    ...kinds.map((kind) => {
      const { requests = 0, failed = [] } = one.tallies.get(kind) ?? {};
      return `${requests} (${failed.length})`;
    }),
    seconds(one.stopMs),
    seconds(one.startMs),
    one.closes.length === 0 ? '0' : `${one.closes.length} with ${[...new Set(one.closes)].join(', ')}`,
    one.closesMs.toFixed(0),
    seconds(one.caughtUpMs),
    String(one.flaws.length),
  ]);
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return `${lines.join('\n')}\n`;
}

/** Everything that failed, by process, kind and words, with how often it did. */
export function failuresOf(restarts: readonly Restart[]): string[] {
  const counts = new Map<string, number>();
  for (const { name, tallies } of restarts) {
    for (const [kind, { failed }] of tallies) {
      for (const failure of failed) {
        const words = `${name}: ${kind}: ${failure}`;
        counts.set(words, (counts.get(words) ?? 0) + 1);
      }
    }
  }
  return [...counts].map(([words, count]) => `${count} times ${words}`);
}

const seconds = (ms: number) => (ms / 1_000).toFixed(1);
