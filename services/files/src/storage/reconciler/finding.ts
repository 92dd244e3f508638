import type { UsageFigures } from './reconciler.store.ts';

/** Kinds of inconsistencies, in the order in which a summary names them. */
export const FINDING_KINDS = [
  'missing object',
  'damaged object',
  'unreadable object',
  'lost avatar',
  'unknown object',
  'unfinished upload',
  'wrong usage',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** Database, store and usage that disagree. */
export interface Finding {
  readonly kind: FindingKind;
  /** Id of the file, avatar or application, or key of the object. */
  readonly subject: string;
  readonly text: string;
  /** Repairs it if it still holds. Throws where it can't be repaired. */
  repair(): Promise<'mended' | 'gone'>;
}

export interface ReconcileOptions {
  /** Repair what was found, once everything was compared. */
  readonly mend: boolean;
  /** Compare sizes only, so that no object is read. */
  readonly skipChecksums: boolean;
  /** Repair even if so much is wrong that the settings are likely to be. */
  readonly force: boolean;
}

/** Progress, updated in place. */
export const createCounts = () => ({
  files: 0,
  /** About how many files there are. */
  filesExpected: 0,
  avatars: 0,
  bytesRead: 0,
  objects: 0,
  applications: 0,
  findings: 0,
  mended: 0,
});
export type Counts = ReturnType<typeof createCounts>;

export interface Observer {
  readonly counts: Counts;
  onFinding(finding: Finding): void;
  onRepair(finding: Finding, outcome: 'mended' | 'gone' | 'failed', err?: unknown): void;
}

export interface Summary {
  readonly byKind: ReadonlyMap<FindingKind, number>;
  /** Findings that still hold. */
  readonly left: number;
  /** Why nothing was repaired: most files have no intact object, or most objects no file. */
  readonly refusal: 'files' | 'objects' | undefined;
}

const number = new Intl.NumberFormat('en-US');

/** A count with its noun in singular or plural. */
export function countOf(n: number, noun: string): string {
  return `${number.format(n)} ${n === 1 ? noun : `${noun}s`}`;
}

export function describeUsage(usage: UsageFigures | undefined): string {
  return usage ? `${countOf(usage.fileCount, 'file')} and ${number.format(usage.chargedMib)} MiB` : 'nothing';
}
