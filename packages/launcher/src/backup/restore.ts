import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { changeEpochOf } from '@latchkey/apps/event/new-epoch-command';
import { prepareCopiedCluster } from '@latchkey/embedded/postgres/copied-cluster';
import { copyFile, copyFolder, type OnBytes, syncFolder, unlessMissing } from '@latchkey/embedded/postgres/copy-files';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/postgres/service-databases';
import { acquireDataDirLock } from '@latchkey/embedded/process/data-dir-lock';
import { isMissingTable } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { Unpack } from 'tar';
import { checkCopy } from './backup.ts';
import { BackupError, type BackupTarget, withProgress } from './backup-command.ts';
import { readManifest, verifyManifest } from './manifest.ts';

/**
 * Restores a backup into an empty data folder, and compares the database with the files there.
 *
 * @throws {BackupError} when the folder is not empty, or the backup is missing or damaged; the
 *   folder is empty then
 */
export async function restore(target: BackupTarget): Promise<void> {
  const { dataDir, objectsDir, note, stops } = target;
  await requireEmpty(dataDir);
  const source = await openBackup(target);
  const manifest = await readManifest(source);
  const lock = await acquireDataDirLock(dataDir);
  stops.defer(lock.release);
  // Another Latchkey may have used the folder before the lock.
  await requireEmpty(dataDir);
  if (!objectsDir.startsWith(`${dataDir}/`)) await requireEmpty(objectsDir);
  const totalBytes = Object.values(manifest.files).reduce((sum, { size }) => sum + size, 0);
  const verify = (onBytes: OnBytes) => verifyManifest(source, manifest, onBytes);
  await withProgress('Verifying checksums', note, verify, totalBytes);

  const undo = stops.use(new AsyncDisposableStack());
  undo.defer(() => empty(dataDir, objectsDir));
  const cluster = await prepareCopiedCluster(dataDir);
  undo.defer(cluster.discard);
  const copy = async (onBytes: OnBytes) => {
    await copyFolder(join(source, 'postgres', 'data'), cluster.clusterDir, onBytes);
    await copyFile(join(source, 'postgres', 'credentials.json'), cluster.credentialsPath, onBytes);
    await mkdir(objectsDir, { recursive: true, mode: 0o700 });
    await copyFolder(join(source, 'files'), objectsDir, onBytes);
    await copyFile(join(source, 'secrets.json'), join(dataDir, 'secrets.json'), onBytes, { mayVanish: true });
  };
  await withProgress('Copying', note, copy, totalBytes);
  await cluster.handOver();
  const postgres = await startPostgres({ dataDir, onProgress: note });
  stops.defer(() => postgres.stop());
  await checkCopy((await readServiceDatabaseUrl(postgres, 'files')) ?? '', objectsDir, note);
  await changeEventEpoch((await readServiceDatabaseUrl(postgres, 'apps')) ?? '');
  await postgres.stop();
  await Promise.all([syncFolder(cluster.clusterDir), syncFolder(dataDir), syncFolder(objectsDir)]);
  // Copied files stay.
  undo.move();
  note(`Restored the backup of ${manifest.createdAt} to ${dataDir}. npm start with this DATA_DIR runs it.`);
}

/** So that no live client resumes into other events under the numbers that it knows. */
async function changeEventEpoch(url: string): Promise<void> {
  await changeEpochOf(url, createLogger('restore', 'silent')).catch((err: unknown) => {
    // A backup of an earlier release: its first start creates the table, with another epoch.
    if (!isMissingTable(err)) throw err;
  });
}

async function requireEmpty(dir: string): Promise<void> {
  const names = (await unlessMissing(readdir(dir))) ?? [];
  if (names.length === 0) return;
  throw new BackupError(`${dir} is not empty: set DATA_DIR to a new folder, or move this one away.`);
}

/** The folder of the backup. A .tar file is unpacked next to the data folder for this time. */
async function openBackup({ path, dataDir, stops }: BackupTarget): Promise<string> {
  const found = await unlessMissing(stat(path));
  if (!found) throw new BackupError(`There is no backup at ${path}.`);
  if (found.isDirectory()) return path;
  await mkdir(dirname(dataDir), { recursive: true });
  const dir = await mkdtemp(`${dataDir}.unpacked-`);
  stops.defer(() => rm(dir, { recursive: true, force: true }));
  await unpack(path, dir).catch((err: Error) => {
    throw new BackupError(`${path} can't be unpacked: ${err.message}`);
  });
  return dir;
}

/** The library accepts an archive that was cut between two of its files, or within its end. */
async function unpack(path: string, dir: string): Promise<void> {
  const unpacking = new Unpack({ cwd: dir, preserveOwner: false, strict: true });
  let isWhole = false;
  unpacking.once('eof', () => {
    isWhole = true;
  });
  await new Promise((resolve, reject) => {
    const source = createReadStream(path);
    const fail = (err: Error) => reject(source.destroy() && err);
    // A file that is not an archive has an error for each block.
    source.on('error', fail).pipe(unpacking.on('error', fail).once('close', resolve));
  });
  if (!isWhole) throw new Error('it ends early. Copy it again.');
}

async function empty(...dirs: readonly string[]): Promise<void> {
  for (const dir of dirs) {
    for (const name of await readdir(dir).catch(() => [])) await rm(join(dir, name), { recursive: true, force: true });
  }
}
