import stringWidth from 'fast-string-width';
import { formatBytes, pad, printable } from '../output/text.ts';
import { type ApplicationChange, changesItself, countChanges, type Plan } from './plan.ts';
import type { FileChange } from './plan-files.ts';

const MARKERS = { create: '+', change: '~', replace: '~', delete: '-' } as const;
const NAME_WIDTH_MAX = 32;

export type Colors = Readonly<Record<string, (text: string) => string>>;

type Line = readonly [marker: string, name: string, description: string];

export function formatPlan({ changes }: Plan, colors: Colors = {}): string[] {
  const markerOf = (change: ApplicationChange) => (changesItself(change) ? MARKERS[change.action] : ' ');
  const heads = formatLines(
    changes.map((change) => [markerOf(change), change.name, describeChange(change)]),
    '',
    colors,
  );
  return changes.flatMap(({ files }, index) => [
    heads[index] ?? '',
    ...formatLines(
      files.map((file) => [MARKERS[file.action], file.name, describeFile(file)]),
      '    ',
      colors,
    ),
  ]);
}

function formatLines(lines: readonly Line[], indent: string, colors: Colors): string[] {
  const texts = lines.map(([marker, name, description]) => [marker, printable(name), printable(description)] as const);
  const width = Math.min(NAME_WIDTH_MAX, Math.max(0, ...texts.map(([, name]) => stringWidth(name))));
  return texts.map(([marker, name, description]) => {
    const { [marker]: color = (text: string) => text } = colors;
    return `${indent}${color(marker)} ${pad(name, width)}   ${description}`.trimEnd();
  });
}

function describeChange({ action, settings, levels, channels = [] }: ApplicationChange): string {
  if (action === 'delete') return 'with its files and keys';
  const parts = settings.map(({ name, from, to }) => `${name} ${from === undefined ? '' : `${from} → `}${to}`);
  if (levels) {
    const from = action === 'create' || levels.from.length === 0 ? '' : `${levels.from.join(', ')} → `;
    parts.push(`levels ${from}${levels.to.join(', ')}`);
  }
  for (const { action: done, channel, version, rolloutPercent } of channels) {
    const share = rolloutPercent === undefined ? '' : ` to ${rolloutPercent} %`;
    parts.push(`${done === 'publish' ? 'publish' : 'roll out'} ${version} of ${channel}${share}`);
  }
  return parts.join(', ');
}

function describeFile({ action, source }: FileChange): string {
  if (!source) return '';
  const size = `${formatBytes(source.byteSize)} from ${source.declaredPath}`;
  return action === 'replace' ? `${size}, replaces other content` : size;
}

/** The number of changes, as the start of a sentence. */
export function describeCount(plan: Plan): string {
  const count = countChanges(plan);
  return `${count} change${count === 1 ? '' : 's'}`;
}

/** Irreversible deletions, as a sentence after another one; empty without any. */
export function describeDeletions({ changes }: Plan): string {
  const applications = changes.filter(({ action }) => action === 'delete').length;
  const files = changes.flatMap((change) => change.files.filter(({ action }) => action === 'delete')).length;
  const counts = describeCounts(applications, files);
  return counts === '' ? '' : ` This deletes ${counts} for good.`;
}

/** Undeclared objects that stay; undefined without any. */
export function describeUndeclared({ undeclared: { applications, files } }: Plan): string | undefined {
  const counts = describeCounts(applications, files);
  return counts === '' ? undefined : `Not declared, and left alone: ${counts}. --prune deletes what is not declared.`;
}

function describeCounts(applications: number, files: number): string {
  const describe = (count: number, noun: string) => (count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}`]);
  return [...describe(applications, 'application'), ...describe(files, 'file')].join(' and ');
}
