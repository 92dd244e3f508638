import { formatBytes } from '../output/text.ts';
import { type ApplicationChange, changesItself, countChanges, type Plan } from './plan.ts';
import type { FileChange } from './plan-files.ts';

const MARKERS = { create: '+', change: '~', replace: '~', delete: '-' } as const;
const NAME_WIDTH_MAX = 32;

/** The lines of a plan, each with its marker. */
export function formatPlan({ changes }: Plan): string[] {
  const width = Math.min(NAME_WIDTH_MAX, Math.max(0, ...changes.map(({ name }) => name.length)));
  return changes.flatMap((change) => {
    const marker = changesItself(change) ? MARKERS[change.action] : ' ';
    const head = `${marker} ${change.name.padEnd(width)}   ${describeChange(change)}`.trimEnd();
    return [head, ...formatFiles(change.files)];
  });
}

function describeChange({ action, settings, levels }: ApplicationChange): string {
  if (action === 'delete') return 'with its files and keys';
  const parts = settings.map(({ name, from, to }) => `${name} ${from === undefined ? '' : `${from} → `}${to}`);
  if (levels) {
    const from = action === 'create' || levels.from.length === 0 ? '' : `${levels.from.join(', ')} → `;
    parts.push(`levels ${from}${levels.to.join(', ')}`);
  }
  return parts.join(', ');
}

function formatFiles(files: readonly FileChange[]): string[] {
  const width = Math.max(0, ...files.map(({ name }) => name.length));
  return files.map((file) => `    ${MARKERS[file.action]} ${file.name.padEnd(width)}   ${describeFile(file)}`.trimEnd());
}

function describeFile({ action, source, stagedId }: FileChange): string {
  if (action === 'delete') return '';
  const size =
    stagedId !== undefined || !source ? 'uploaded already' : `${formatBytes(source.byteSize)} from ${source.declaredPath}`;
  return action === 'replace' ? `${size}, replaces other content` : size;
}

/** How many changes, as the start of a sentence. */
export function describeCount(plan: Plan): string {
  const count = countChanges(plan);
  return `${count} change${count === 1 ? '' : 's'}`;
}

/** What stays although it is not declared; undefined where nothing does. */
export function describeUndeclared({ undeclared: { applications, files } }: Plan): string | undefined {
  const counts = [
    ...(applications > 0 ? [`${applications} application${applications === 1 ? '' : 's'}`] : []),
    ...(files > 0 ? [`${files} file${files === 1 ? '' : 's'}`] : []),
  ];
  if (counts.length === 0) return undefined;
  return `Not declared, and left alone: ${counts.join(' and ')}. --prune deletes what is not declared.`;
}
