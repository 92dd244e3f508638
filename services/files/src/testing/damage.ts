import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { newId } from '@latchkey/kit/id';
import { diskLayout, objectPaths, temporaryPath } from '../storage/object-store/disk-layout.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { type CheckOptions, type CheckSummary, checkFiles } from '../storage/reconciler/check-files.ts';
import type { Finding } from '../storage/reconciler/finding.ts';
import type { CheckContext } from '../storage/reconciler/walk.ts';
import type { OwnedRef } from './fake-apps.ts';
import type { TestFiles } from './test-files.ts';

/** What a check did. */
export interface Checked extends CheckSummary {
  readonly findings: Finding[];
  /** Findings in short: the kind, and the id of the file, object or application. */
  readonly found: string[];
  readonly outcomes: string[];
}

/** Runs a check, which only reports unless it is told otherwise. */
export async function check(
  ctx: CheckContext,
  options: Partial<CheckOptions> = {},
  onFinding: (finding: Finding) => void = () => undefined,
): Promise<Checked> {
  const findings: Finding[] = [];
  const outcomes: string[] = [];
  const observer = {
    onProgress: () => undefined,
    onFinding: (finding: Finding) => {
      findings.push(finding);
      onFinding(finding);
    },
    onMended: (finding: Finding, outcome: string) => void outcomes.push(`${outcome} ${inShort(finding)}`),
  };
  const summary = await checkFiles(ctx, { mend: false, skipChecksums: false, force: false, ...options }, observer);
  return { ...summary, findings, found: findings.map(inShort).toSorted(), outcomes: outcomes.toSorted() };
}

export function inShort(finding: Finding): string {
  if ('avatar' in finding) return `${finding.kind} ${finding.avatar.id}`;
  if ('file' in finding) return `${finding.kind} ${finding.file.id}`;
  return `${finding.kind} ${'object' in finding ? finding.object.key : finding.usage.applicationId}`;
}

/** Where the object of a file lies. */
export function pathOf(files: TestFiles, { applicationId }: OwnedRef, id: string): string {
  return objectPaths(diskLayout(files.objectsDir), objectKey(applicationId, id)).file;
}

/** Takes a file's object away. */
export const loseObject = (files: TestFiles, ref: OwnedRef, id: string): Promise<void> => rm(pathOf(files, ref, id));

/** Gives a file's object other bytes. */
export const damageObject = (files: TestFiles, ref: OwnedRef, id: string, bytes: string): Promise<void> =>
  writeFile(pathOf(files, ref, id), bytes);

/** Puts an object there that nobody knows, and answers its key. */
export async function putOrphan(files: TestFiles, applicationId: string = newId()): Promise<string> {
  const key = objectKey(applicationId, newId());
  return putAt(objectPaths(diskLayout(files.objectsDir), key).file, key);
}

/** The same of what an upload that was cut off leaves. */
export async function putUnfinished(files: TestFiles, key = objectKey(newId(), newId())): Promise<string> {
  return putAt(temporaryPath(diskLayout(files.objectsDir), key), key);
}

async function putAt(path: string, key: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, 'bytes');
  return key;
}
