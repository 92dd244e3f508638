import { chmod, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { backUpCluster } from '@latchkey/embedded/postgres/cluster-backup';
import { type CopiedCluster, prepareCopiedCluster } from '@latchkey/embedded/postgres/copied-cluster';
import { copyFile, type OnBytes, sync, syncFolder } from '@latchkey/embedded/postgres/copy-files';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { findPostgres, readAdminUrl } from '@latchkey/embedded/postgres/running-postgres';
import { readServiceDatabaseUrl } from '@latchkey/embedded/postgres/service-databases';
import { EXIT, runCheck } from '@latchkey/files/storage/reconciler/check-command';
import { selectUnknownKeys } from '@latchkey/files/storage/reconciler/reconciler.store';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { Client } from 'pg';
import { create } from 'tar';
import { filesConfigFor } from '../check-files.ts';
import { openDatabase } from '../open-database.ts';
import { BackupError, type BackupTarget, withProgress } from './backup-command.ts';
import { writeManifest } from './manifest.ts';
import { createObjectSnapshot, type ObjectSnapshot } from './object-snapshot.ts';

const KEYS_PER_QUERY = 1_000;
/** Longest wait of the lock for deletions under way: other writers queue behind it. */
const LOCK_TIMEOUT = '1s';
const LOCK_TRIES_MAX = 20;

/**
 * Backs up the data folder of `npm start`, running or not, to a folder or a .tar file.
 *
 * The copy shows one moment: the end of the database's backup. Objects never change, so only a
 * deletion can remove one that the database still has at that moment. Deletions wait while the
 * backup ends and the objects get a second name. The copied database is started once, which
 * recovers it, and compared with the copied objects.
 *
 * @throws {BackupError} when the target exists, another backup runs, or the copy is not intact
 */
export async function backUp(target: BackupTarget): Promise<void> {
  const { path, dataDir, objectsDir, note, stops } = target;
  if (await stat(path).catch(() => undefined)) throw new BackupError(`${path} exists already: name another folder or file.`);
  const database = await openDatabase(dataDir, 'files', 'the backup', note);
  stops.defer(database.close);
  const source = await findPostgres(dataDir);
  if (!source) throw new BackupError(`The database in ${dataDir} stopped: start Latchkey again, or stop it, and try again.`);
  const adminUrl = await readAdminUrl(source.credentialsPath, source.port);
  const admin = await connectAlone(adminUrl, stops);

  const stage = await makeStage(`${path}.partial-`, stops);
  const snapshot = await createObjectSnapshot(objectsDir);
  stops.defer(snapshot.remove);
  const cluster = await prepareCopiedCluster(stage);
  stops.defer(cluster.discard);
  await withProgress('Copying the database', note, (onBytes) =>
    backUpCluster(adminUrl, source.clusterDir, cluster.clusterDir, onBytes, (stop) =>
      stopWithoutDeletions(admin, snapshot, stop),
    ),
  );
  await copyFile(source.credentialsPath, cluster.credentialsPath, () => {});
  await copyFile(join(dataDir, 'secrets.json'), join(stage, 'secrets.json'), () => {}, { mayVanish: true });
  await verify(stage, cluster, snapshot, target);

  await withProgress('Writing checksums', note, (onBytes) => writeManifest(stage, onBytes));
  await publish(stage, path);
  note(`Backed up ${dataDir} to ${path}. The backup contains secrets: store it where only you can read it.`);
}

async function connectAlone(url: string, stops: AsyncDisposableStack): Promise<Client> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000, query_timeout: 10_000 });
  client.on('error', () => {});
  await client.connect();
  stops.defer(() => client.end());
  const { rows } = await client.query(`SELECT pg_try_advisory_lock(hashtext('latchkey backup')) AS acquired`);
  if (!rows[0].acquired) throw new BackupError('Another backup of this database is running: wait until it has ended.');
  return client;
}

async function makeStage(prefix: string, stops: AsyncDisposableStack): Promise<string> {
  await mkdir(dirname(prefix), { recursive: true });
  const path = await mkdtemp(prefix);
  // The user that PostgreSQL runs as has to pass through.
  await chmod(path, 0o711);
  stops.defer(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** A transaction that removes a row adds to `object_deletion`: the lock blocks its commit. */
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

/** Starts the copied database, copies the objects that it has rows of, and compares both. */
async function verify(stage: string, cluster: CopiedCluster, snapshot: ObjectSnapshot, target: BackupTarget): Promise<void> {
  const { note, stops } = target;
  await cluster.handOver();
  const postgres = await startPostgres({ dataDir: stage, onProgress: note });
  stops.defer(() => postgres.stop());
  const url = (await readServiceDatabaseUrl(postgres, 'files')) ?? '';
  const objectsDir = join(stage, 'files');
  await withProgress('Copying files', note, (onBytes) => copyKnownObjects(url, snapshot, join(objectsDir, 'objects'), onBytes));
  await checkCopy(url, objectsDir, note);
  await postgres.stop();
  await cluster.bringHome();
}

/** Leaves out the objects of uploads that were committed after the moment of the backup. */
async function copyKnownObjects(url: string, snapshot: ObjectSnapshot, targetDir: string, onBytes: OnBytes): Promise<void> {
  await mkdir(targetDir, { recursive: true, mode: 0o700 });
  const database = createDatabase<unknown>({ url, schema: 'files', poolMax: 1, logger: createLogger('backup', 'silent') });
  try {
    const keys = [...snapshot.keys()];
    for (let start = 0; start < keys.length; start += KEYS_PER_QUERY) {
      const batch = keys.slice(start, start + KEYS_PER_QUERY);
      const unknown = await selectUnknownKeys(database.db, batch);
      for (const key of batch.filter((key) => !unknown.has(key))) {
        await mkdir(dirname(join(targetDir, key)), { recursive: true, mode: 0o700 });
        await copyFile(snapshot.pathOf(key), join(targetDir, key), onBytes);
      }
    }
  } finally {
    await database.close();
  }
}

/** @throws {BackupError} when check-files, checksums included, finds anything wrong with a copy */
export async function checkCopy(databaseUrl: string, objectsDir: string, note: (line: string) => void): Promise<void> {
  note('  Comparing the database with the files, checksums included.');
  const config = filesConfigFor({}, databaseUrl, objectsDir);
  const output = { command: 'latchkey admin check-files', out: process.stderr, err: process.stderr };
  const code = await runCheck(config, { repair: false, skipChecksums: false, force: false }, output);
  if (code !== EXIT.done) {
    throw new BackupError('The copy is not intact, as shown above. Run "latchkey admin check-files", then try again.');
  }
}

async function publish(stage: string, path: string): Promise<void> {
  await syncFolder(stage);
  await chmod(stage, 0o700);
  const isTar = path.endsWith('.tar');
  const draft = isTar ? `${stage}.tar` : stage;
  try {
    if (isTar) {
      await create({ file: draft, cwd: stage, portable: true, mode: 0o600 }, ['.']);
      await chmod(draft, 0o600);
      await sync(draft);
    }
    await rename(draft, path);
    await sync(dirname(path));
  } finally {
    await rm(`${stage}.tar`, { force: true });
  }
}
