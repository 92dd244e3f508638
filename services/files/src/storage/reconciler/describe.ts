import type { CheckSummary } from './check-files.ts';
import type { CheckCounts, CheckedFile, Finding, FindingKind, UsageFigures } from './finding.ts';

const number = new Intl.NumberFormat('en-US');
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A count with the noun in singular or plural. */
function count(n: number, noun: string): string {
  return `${number.format(n)} ${n === 1 ? noun : `${noun}s`}`;
}

/** A size in the largest unit of which there is one. */
export function describeBytes(bytes: number): string {
  let value = bytes;
  let unit = 'bytes';
  for (const next of UNITS) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return unit === 'bytes' ? count(bytes, 'byte') : `${value.toFixed(1)} ${unit}`;
}

/** One line about a finding, with all that is needed to look into it. */
export function describeFinding(finding: Finding): string {
  switch (finding.kind) {
    case 'object_missing':
      return `missing object      ${describeFile(finding.file)}: there is no object`;
    case 'object_damaged':
      return `damaged object      ${describeFile(finding.file)}: ${describeDamage(finding)}`;
    case 'object_unreadable':
      return `unreadable object   ${describeFile(finding.file)}: ${finding.reason}`;
    case 'avatar_lost':
      return `lost avatar         avatar ${finding.avatar.id} of account ${finding.avatar.accountId}: its image is ${finding.what}`;
    case 'object_orphaned':
      return `unknown object      ${finding.object.key}: ${count(finding.object.byteSize, 'byte')} that belong to no file`;
    case 'upload_unfinished':
      return `unfinished upload   ${finding.object.key}: what is left of an upload that nobody knows`;
    case 'usage_wrong': {
      const { applicationId, recorded, actual } = finding.usage;
      return `wrong usage         application ${applicationId}: ${describeUsage(recorded)} recorded, ${describeUsage(actual)} there`;
    }
  }
}

function describeFile({ id, applicationId, displayName, byteSize }: CheckedFile): string {
  return `file ${id} "${displayName}" (${count(byteSize, 'byte')}) of application ${applicationId}`;
}

function describeDamage({ file, byteSize, checksum }: Extract<Finding, { kind: 'object_damaged' }>): string {
  if (byteSize !== file.byteSize) return `the object has ${count(byteSize, 'byte')}`;
  return `the SHA-256 is ${checksum?.toString('hex')} and not ${file.checksum.toString('hex')}`;
}

function describeUsage(usage: UsageFigures | undefined): string {
  return usage ? `${count(usage.fileCount, 'file')} and ${number.format(usage.chargedMib)} MiB` : 'nothing';
}

/** How far a check has come, in a few words. */
export function describeProgress({ files, filesExpected, bytesRead, objects, findings, mended }: CheckCounts): string {
  const parts = [
    // The number to expect is recorded, and may be passed.
    `${number.format(files)} of ${count(Math.max(files, filesExpected), 'file')}`,
    `${describeBytes(bytesRead)} read`,
    count(objects, 'object'),
    count(findings, 'problem'),
  ];
  if (mended > 0) parts.push(`${number.format(mended)} mended`);
  return parts.join(', ');
}

const NOUNS: Readonly<Record<FindingKind, string>> = {
  object_missing: 'missing object',
  object_damaged: 'damaged object',
  object_unreadable: 'unreadable object',
  avatar_lost: 'lost avatar',
  object_orphaned: 'unknown object',
  upload_unfinished: 'unfinished upload',
  usage_wrong: 'wrong usage',
};

const REFUSALS = {
  files: 'most files have no intact object, as if this were another folder or bucket than the one they were stored in',
  objects: 'most objects belong to no file, as if this were another database than the one their files are in',
} as const;

/** What else the last words depend on. */
export interface CheckWording {
  readonly mend: boolean;
  /** How the command is called. */
  readonly command: string;
  readonly seconds: number;
}

/** The last words of a check. */
export function describeSummary(summary: CheckSummary, { mend, command, seconds }: CheckWording): string {
  const { counts, byKind, left, refusal } = summary;
  const looked = [count(counts.files, 'file'), count(counts.objects, 'object'), count(counts.applications, 'application')];
  if (counts.avatars > 0) looked.push(count(counts.avatars, 'avatar'));
  // In the order of the nouns: several objects are looked at at once, so any of them may have been found first.
  const kinds = (Object.keys(NOUNS) as FindingKind[]).flatMap((kind) => {
    const found = byKind.get(kind);
    return found ? [count(found, NOUNS[kind])] : [];
  });
  const lines = [
    `Checked ${looked.join(', ')} in ${seconds.toFixed(1)} s; read ${describeBytes(counts.bytesRead)}.`,
    counts.findings === 0 ? 'Nothing is wrong.' : `Found ${count(counts.findings, 'problem')}: ${kinds.join(', ')}.`,
  ];
  if (refusal) lines.push(`Nothing was mended: ${REFUSALS[refusal]}. Check the settings; --mend --force mends all the same.`);
  else if (mend && counts.findings > 0) lines.push(`Mended ${number.format(counts.mended)}; ${number.format(left)} left.`);
  else if (left > 0) lines.push(`Nothing was changed. To mend it: ${command} --mend (${command} --help says how).`);
  return lines.join('\n');
}
