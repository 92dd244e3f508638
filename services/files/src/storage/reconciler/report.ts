import { type Counts, countOf, FINDING_KINDS, type Finding, type Summary } from './finding.ts';

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;
const KIND_WIDTH = 20;

/** A size in the largest unit of which there is at least one. */
export function describeBytes(bytes: number): string {
  if (bytes < 1024) return countOf(bytes, 'byte');
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length);
  return `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power - 1]}`;
}

export const describeFinding = ({ kind, text }: Finding): string => `${kind.padEnd(KIND_WIDTH)}${text}`;

export function describeProgress({ files, filesExpected, bytesRead, objects, findings, mended }: Counts): string {
  // The expected number is the recorded one, and may be exceeded.
  const done = `${files.toLocaleString('en-US')} of ${countOf(Math.max(files, filesExpected), 'file')}`;
  const parts = [done, `${describeBytes(bytesRead)} read`, countOf(objects, 'object'), countOf(findings, 'problem')];
  if (mended > 0) parts.push(`${mended.toLocaleString('en-US')} mended`);
  return parts.join(', ');
}

const REFUSALS = {
  files: 'most files have no intact object, as if this were another folder or bucket than the one they were stored in',
  objects: 'most objects belong to no file, as if this were another database than the one their files are in',
} as const;

export interface SummaryContext {
  readonly counts: Counts;
  readonly mend: boolean;
  /** How the command is called. */
  readonly command: string;
  readonly seconds: number;
}

/** The last lines of a run. */
export function describeSummary({ byKind, left, refusal }: Summary, context: SummaryContext): string {
  const { counts, mend, command, seconds } = context;
  const checked = [countOf(counts.files, 'file'), countOf(counts.objects, 'object'), countOf(counts.applications, 'application')];
  if (counts.avatars > 0) checked.push(countOf(counts.avatars, 'avatar'));
  const kinds = FINDING_KINDS.filter((kind) => byKind.has(kind)).map((kind) => countOf(byKind.get(kind) ?? 0, kind));
  const lines = [
    `Checked ${checked.join(', ')} in ${seconds.toFixed(1)} s; read ${describeBytes(counts.bytesRead)}.`,
    counts.findings === 0 ? 'Nothing is wrong.' : `Found ${countOf(counts.findings, 'problem')}: ${kinds.join(', ')}.`,
  ];
  if (refusal) lines.push(`Nothing was mended: ${REFUSALS[refusal]}. Check the settings; --mend --force mends all the same.`);
  else if (mend && counts.findings > 0) lines.push(`Mended ${counts.mended.toLocaleString('en-US')}; ${left} left.`);
  else if (left > 0) lines.push(`Nothing was changed. To mend it: ${command} --mend (${command} --help says how).`);
  return lines.join('\n');
}
