import type { StoredFile, WantedFile } from './state.ts';

export interface FileChange {
  readonly action: 'create' | 'replace' | 'delete';
  readonly name: string;
  /** The file that is replaced or deleted. */
  readonly id?: string;
  readonly sha256?: string;
  /** The file to upload, unless an earlier run did. */
  readonly source?: WantedFile['source'];
  /** The file that an earlier run uploaded under its staging name. */
  readonly stagedId?: string;
}

/**
 * The name under which a replacement is uploaded, as the old file stays until the new one is
 * stored. It names its content, so a later run recognises what an interrupted one left.
 */
export function stagingName(sha256: string): string {
  return `apply-${sha256.slice(0, 10)}`;
}

export function planFiles(wanted: readonly WantedFile[], stored: readonly StoredFile[], prune: boolean) {
  const names = new Set(wanted.map(({ name }) => name));
  const isStaged = ({ name, sha256 }: StoredFile) => name === stagingName(sha256) && !names.has(name);
  const staged = new Map(stored.filter(isStaged).map((file) => [file.sha256, file]));
  const problems: string[] = [];
  const changes: FileChange[] = [];
  for (const { name, sha256, source } of wanted) {
    const found = stored.find((file) => file.name === name);
    if (found?.sha256 === sha256) continue;
    const ready = staged.get(sha256);
    staged.delete(sha256);
    if (!source && !ready) problems.push(`the server has no file ${name} with this sha256. Give a path to upload it.`);
    changes.push({
      action: found ? 'replace' : 'create',
      name,
      sha256,
      ...(found && { id: found.id }),
      ...(source && { source }),
      ...(ready && { stagedId: ready.id }),
    });
  }
  const others = stored.filter((file) => !names.has(file.name) && !isStaged(file));
  for (const { name, id } of [...staged.values(), ...(prune ? others : [])]) changes.push({ action: 'delete', name, id });
  return { changes, problems, undeclared: prune ? 0 : others.length };
}
