import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { formatBytes } from '../output/text.ts';
import { hashFile } from '../upload/hash-file.ts';
import { type DeclaredApplication, type DeclaredFile, nameOf } from './declaration.ts';
import { DeclarationError, type WantedApplication, type WantedFile } from './state.ts';

const MIB = 1_048_576;

/**
 * Reads sizes and checksums of declared files, one after the other, as one core hashes faster than
 * most disks read.
 *
 * @param baseDir what their paths are relative to
 * @param sizeMiBMax size of the largest file that the server accepts, if it is known
 * @throws {DeclarationError} naming every file that can't be uploaded
 */
export async function readFiles(
  declared: readonly DeclaredApplication[],
  baseDir: string,
  sizeMiBMax = Number.POSITIVE_INFINITY,
): Promise<WantedApplication[]> {
  const problems: string[] = [];
  const wanted: WantedApplication[] = [];
  for (const { files, ...application } of declared) {
    const found: WantedFile[] = [];
    for (const file of files ?? []) {
      try {
        found.push(await readFile(file, baseDir, sizeMiBMax));
      } catch (err) {
        problems.push(`${application.name}: ${(err as Error).message}`);
      }
    }
    wanted.push({ ...application, ...(files && { files: found }) });
  }
  if (problems.length > 0) throw new DeclarationError(problems.join('\n'));
  return wanted;
}

async function readFile(file: DeclaredFile, baseDir: string, sizeMiBMax: number): Promise<WantedFile> {
  const name = nameOf(file);
  if (!('path' in file)) return { name, sha256: file.sha256 };
  const path = resolve(baseDir, file.path);
  const found = await stat(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`${file.path} can't be read (${code}). Correct its path, which is relative to the document.`);
  });
  if (!found.isFile()) throw new Error(`${file.path} is not a file.`);
  if (found.size === 0) throw new Error(`${file.path} is empty, which the server rejects.`);
  if (found.size > sizeMiBMax * MIB)
    throw new Error(`${file.path} has ${formatBytes(found.size)}: files have at most ${sizeMiBMax} MiB.`);
  return { name, sha256: await hashFile(path), source: { path, declaredPath: file.path, byteSize: found.size } };
}
