import { chmod, mkdir, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { backUpCluster } from '@latchkey/embedded/cluster-backup';
import { type CopiedCluster, prepareCopiedCluster } from '@latchkey/embedded/copied-cluster';
import { copyFile, syncFolder } from '@latchkey/embedded/copy-files';
import { startPostgres } from '@latchkey/embedded/postgres';
import { findPostgres, readAdminUrl } from '@latchkey/embedded/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/service-databases';
import type { FilesDatabase } from '@latchkey/files/db/schema';
import { selectUnknownKeys } from '@latchkey/files/storage/reconciler/reconciler.store';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import { Client } from 'pg';
import { create } from 'tar';
import { openServiceDatabase } from '../service-database.ts';
import { BackupError, type BackupTarget } from './backup-command.ts';
import { checkCopy } from './check-copy.ts';
import { writeManifest } from './manifest.ts';
import { createObjectSnapshot, type ObjectSnapshot } from './object-snapshot.ts';
import { startProgress } from './progress.ts';

const KEYS_PER_QUERY = 1_000;
/** How long the lock may wait for deletions under way, as others wait behind it meanwhile. */
const LOCK_TIMEOUT = '1s';
const LOCK_TRIES_MAX = 20;

/**
 * Backs up the data folder of `npm start`, running or not, to a folder or a .tar file.
 *
 * The copy shows one moment: the end of the database's backup. Objects never change, so only deletions can take one away
 * that the database still has at that moment; they wait while the backup ends and the objects get a second name. The
 * copied database is started once, which recovers it, and compared with the copied objects.
 *
 * @throws {BackupError} when the target exists, another backup runs, or the copy is not intact
 */
export async function backUp(target: BackupTarget): Promise<void> {
  const { path, dataDir, objectsDir, note, stops } = target;
  if (await stat(path).catch(() => undefined)) throw new BackupError(`${path} exists already: name another folder or file.`);
  const database = await openServiceDatabase({ dataDir, service: 'files', purpose: 'the backup', note });
  stops.push(database.close);
  const source = await findPostgres(dataDir);
  if (!source) throw new BackupError(`The database in ${dataDir} stopped: start Latchkey again, or stop it, and try again.`);
  const adminUrl = await readAdminUrl(source);
  const admin = await connectAlone(adminUrl, stops);

  const stage = await makeStage(`${path}.partial-`, stops);
  const snapshot = await createObjectSnapshot(objectsDir);
  stops.push(snapshot.remove);
  const cluster = await prepareCopiedCluster(stage);
  stops.push(cluster.discard);
  const copying = startProgress('Copying the database', note);
  await backUpCluster({
    url: adminUrl,
    clusterDir: source.clusterDir,
    targetDir: cluster.clusterDir,
    onBytes: copying.add,
    atEnd: (stop) => stopWithoutDeletions(admin, snapshot, stop),
  });
  copying.end();
  await copyFile(source.credentialsPath, cluster.credentialsPath, () => {});
  await copyFile(join(dataDir, 'secrets.json'), join(stage, 'secrets.json'), () => {}, { mayVanish: true });
  await verify(stage, cluster, snapshot, target);

  const hashing = startProgress('Writing checksums', note);
  await writeManifest(stage, hashing.add);
  hashing.end();
  await finish(stage, path);
  note(`Backed up ${dataDir} to ${path}. The backup contains secrets: store it where only you can read it.`);
}

/** A session that only one backup of a database has. */
async function connectAlone(url: string, stops: BackupTarget['stops']): Promise<Client> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000, query_timeout: 10_000 });
  client.on('error', () => {});
  await client.connect();
  stops.push(() => client.end());
  const { rows } = await client.query(`SELECT pg_try_advisory_lock(hashtext('latchkey backup')) AS acquired`);
  if (!rows[0].acquired) throw new BackupError('Another backup of this database is running: wait until it has ended.');
  return client;
}

async function makeStage(prefix: string, stops: BackupTarget['stops']): Promise<string> {
  await mkdir(dirname(prefix), { recursive: true });
  const path = await mkdtemp(prefix);
  // The user that PostgreSQL runs as has to pass through.
  await chmod(path, 0o711);
  stops.push(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** A transaction that removes a row adds its object to `object_deletion`, so the lock keeps all of them from committing. */
export async function stopWithoutDeletions(admin: Client, snapshot: ObjectSnapshot, stop: () => Promise<void>): Promise<void> {
  await snapshot.update();
  for (let tries = 1; ; tries += 1) {
    try {
      await admin.query(`BEGIN; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'; LOCK TABLE files.object_deletion IN SHARE MODE`);
      break;
    } catch (err) {
      await admin.query('ROLLBACK');
      if (tries === LOCK_TRIES_MAX) throw err;
    }
  }
  await stop();
  await snapshot.update();
  await admin.query('COMMIT');
}

/** Starts the copied database, copies the objects that it knows, and compares both. */
async function verify(stage: string, cluster: CopiedCluster, snapshot: ObjectSnapshot, target: BackupTarget): Promise<void> {
  await cluster.handOver();
  const postgres = await startPostgres({ dataDir: stage, onProgress: target.note });
  target.stops.push(() => postgres.stop());
  const url = (await readServiceDatabaseUrl(postgres, 'files')) ?? '';
  const copying = startProgress('Copying files', target.note);
  await copyKnownObjects(url, snapshot, join(stage, 'files', 'objects'), copying.add);
  copying.end();
  await checkCopy(url, join(stage, 'files'), target.note);
  await postgres.stop();
  await cluster.bringHome();
}

/** Leaves out the objects of uploads that were committed after the moment of the backup. */
async function copyKnownObjects(
  url: string,
  snapshot: ObjectSnapshot,
  targetDir: string,
  onBytes: (count: number) => void,
): Promise<void> {
  await mkdir(targetDir, { recursive: true, mode: 0o700 });
  const database = createDatabase<FilesDatabase>({ url, schema: 'files', poolMax: 1, logger: createLogger('backup', 'silent') });
  try {
    const objects = [...snapshot.list()];
    for (let start = 0; start < objects.length; start += KEYS_PER_QUERY) {
      const batch = objects.slice(start, start + KEYS_PER_QUERY);
      const unknown = await selectUnknownKeys(
        database.db,
        batch.map(([key]) => key),
      );
      for (const [key, source] of batch.filter(([key]) => !unknown.has(key))) {
        await mkdir(dirname(join(targetDir, key)), { recursive: true, mode: 0o700 });
        await copyFile(source, join(targetDir, key), onBytes);
      }
    }
  } finally {
    await database.close();
  }
}

/** Gives the backup its name, once it is complete. */
async function finish(stage: string, path: string): Promise<void> {
  await syncFolder(stage);
  await chmod(stage, 0o700);
  const draft = `${stage}.tar`;
  try {
    if (path.endsWith('.tar')) {
      await create({ file: draft, cwd: stage, portable: true, mode: 0o600 }, ['.']);
      await chmod(draft, 0o600);
      await sync(draft);
    }
    await rename(path.endsWith('.tar') ? draft : stage, path);
    await sync(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
