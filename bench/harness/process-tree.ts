import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks a second in /proc, which is 100 on every Linux that Node.js supports. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

export interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

/** A process and all its descendants. Linux only. */
export function processTree(root: number): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat !== undefined);
  const tree = all.filter((stat) => stat.pid === root);
  for (const { pid } of tree) tree.push(...all.filter((stat) => stat.parent === pid));
  return tree;
}

export function cpuSecondsOf(stats: readonly Stat[]): number {
  return stats.reduce((sum, stat) => sum + stat.cpuSeconds, 0);
}

export function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const at = (field: number) => fields[field - 3] ?? 0;
    return { pid, parent: at(4), cpuSeconds: (at(14) + at(15)) / TICKS_PER_SECOND, residentBytes: at(24) * PAGE_BYTES };
  } catch {
    return undefined;
  }
}
