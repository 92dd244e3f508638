import type { StoredFile, WantedFile } from './state.ts';

export interface FileChange {
  readonly action: 'create' | 'replace' | 'delete';
  readonly name: string;
  readonly id?: string;
  readonly sha256?: string;
  readonly source?: WantedFile['source'];
}

export function planFiles(wanted: readonly WantedFile[], stored: readonly StoredFile[], prune: boolean) {
  const names = new Set(wanted.map(({ name }) => name));
  const problems: string[] = [];
  const changes: FileChange[] = [];
  for (const { name, sha256, source } of wanted) {
    const found = stored.find((file) => file.name === name);
    if (found?.sha256 === sha256) continue;
    if (!source) problems.push(`the server has no file ${name} with this sha256. Give a path to upload it.`);
    changes.push({ action: found ? 'replace' : 'create', name, sha256, ...(source && { source }) });
  }
  const others = stored.filter((file) => !names.has(file.name));
  for (const { name, id } of prune ? others : []) changes.push({ action: 'delete', name, id });
  return { changes, problems, undeclared: prune ? 0 : others.length };
}
