import { readFile, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { hashFile, type OnBytes, unlessMissing, walkFiles } from '@latchkey/embedded/postgres/copy-files';
import { z } from 'zod';
import { BackupError } from './backup-command.ts';

const MANIFEST = 'manifest.json';

const schema = z.object({
  version: z.literal(1),
  createdAt: z.iso.datetime(),
  /** By path below the folder of the backup. */
  files: z.record(z.string(), z.object({ size: z.int(), sha256: z.string() })),
});

export type Manifest = z.infer<typeof schema>;

export async function writeManifest(dir: string, onBytes: OnBytes): Promise<void> {
  const files: Manifest['files'] = {};
  for await (const { path, isFolder } of walkFiles(dir)) {
    if (isFolder) continue;
    files[relative(dir, path)] = { size: (await stat(path)).size, sha256: await hashFile(path, onBytes) };
  }
  const manifest: Manifest = { version: 1, createdAt: new Date().toISOString(), files };
  await writeFile(join(dir, MANIFEST), JSON.stringify(manifest), { mode: 0o600, flush: true });
}

/** @throws {BackupError} when the manifest is missing or can't be read */
export async function readManifest(dir: string): Promise<Manifest> {
  const text = await unlessMissing(readFile(join(dir, MANIFEST), 'utf8'));
  if (text === undefined) throw new BackupError(`${dir} is not a complete backup: it has no ${MANIFEST}.`);
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new BackupError(`The backup is damaged: ${join(dir, MANIFEST)} can't be read.`);
  }
}

/** @throws {BackupError} when a file of the backup is missing, damaged or not listed */
export async function verifyManifest(dir: string, manifest: Manifest, onBytes: OnBytes): Promise<void> {
  const missing = new Set(Object.keys(manifest.files));
  for await (const { path, isFolder } of walkFiles(dir)) {
    const name = relative(dir, path);
    if (isFolder || name === MANIFEST) continue;
    const listed = manifest.files[name];
    if (!listed) throw new BackupError(`The backup is damaged: ${name} is not part of it.`);
    if ((await hashFile(path, onBytes)) !== listed.sha256) throw new BackupError(`The backup is damaged: ${name} was changed.`);
    missing.delete(name);
  }
  const [first] = missing;
  if (first !== undefined) throw new BackupError(`The backup is damaged: ${first} is missing.`);
}
