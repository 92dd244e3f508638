import type { Account, Unanswered } from './account.ts';
import type { Subject } from './subject.ts';

/** What all who take part in a run share. */
export interface World {
  readonly subject: Subject;
  readonly accounts: readonly Account[];
  readonly counts: Counts;
  readonly journal: Journal;
  /** Uploads of this round that were cut, lost or in doubt. */
  readonly unanswered: Unanswered[];
}

/** What happened in a run, for whoever asks how hard it was. */
export interface Counts {
  rounds: number;
  uploads: number;
  stored: number;
  refused: number;
  cut: number;
  lost: number;
  inDoubt: number;
  /** Of those in doubt, the ones that turned out to be there. */
  foundThere: number;
  retried: number;
  changesInDoubt: number;
  samples: number;
  /** Longest time from the end of a round until all agreed, in milliseconds. */
  settledMsMax: number;
  /** What was last to agree then. */
  settledLast: string;
  readonly kills: Record<string, number>;
}

export function newCounts(): Counts {
  const zero = { rounds: 0, uploads: 0, stored: 0, refused: 0, cut: 0, lost: 0, inDoubt: 0, foundThere: 0, retried: 0 };
  return { ...zero, changesInDoubt: 0, samples: 0, settledMsMax: 0, settledLast: '', kills: {} };
}

/** Adds what happened in one run to what happened in others. */
export function addCounts(sum: Counts, other: Counts): void {
  for (const [name, count] of Object.entries(other)) {
    const key = name as Exclude<keyof Counts, 'kills' | 'settledLast' | 'settledMsMax'>;
    if (typeof count === 'number' && name !== 'settledMsMax') sum[key] += count;
  }
  if (other.settledMsMax > sum.settledMsMax) {
    sum.settledMsMax = other.settledMsMax;
    sum.settledLast = other.settledLast;
  }
  for (const [victim, count] of Object.entries(other.kills)) sum.kills[victim] = (sum.kills[victim] ?? 0) + count;
}

const LINES_MAX = 2_000;

/** What happened last, line by line, for who has to find out why something failed. */
export class Journal {
  readonly #lines: string[] = [];
  readonly #startedAt = performance.now();

  note(line: string): void {
    this.#lines.push(`${((performance.now() - this.#startedAt) / 1_000).toFixed(3)} ${line}`);
    if (this.#lines.length > LINES_MAX) this.#lines.shift();
  }

  /** The lines that contain one of some texts, and all that tell of faults. */
  about(texts: readonly string[]): string {
    return this.#lines.filter((line) => line.includes('**') || texts.some((text) => line.includes(text))).join('\n');
  }

  text(): string {
    return this.#lines.join('\n');
  }
}
