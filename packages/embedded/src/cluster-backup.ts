import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { copyFile, copyFolder } from './copy-files.ts';

/** Folders whose files PostgreSQL makes anew at start; a backup has them empty. The log is copied separately. */
const EMPTY_FOLDERS =
  /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/|(^|\/)pgsql_tmp/;
const LEFT_OUT = /^(postmaster\.(pid|opts)|current_logfiles)$|(^|\/)pg_internal\.init/;

/** How long a checkpoint, or a lock of the caller's, may take, in milliseconds. */
const TIMEOUT_MS = 120_000;

const STOP_TIMEOUT_MS = 5_000;

export interface ClusterBackupOptions {
  /** The superuser's URL of a running server. */
  readonly url: string;
  readonly clusterDir: string;
  /** An empty folder for the copy. */
  readonly targetDir: string;
  /**
   * Ends the backup by calling `stop`, whose moment is the one that a restored copy shows, and does whatever has to
   * happen just before and after that moment.
   */
  readonly atEnd: (stop: () => Promise<void>) => Promise<void>;
  /** Gets the size of each piece that was copied, in bytes. */
  readonly onBytes: (count: number) => void;
}

/**
 * Copies a running cluster with PostgreSQL's low-level backup API (manual, "Making a Base Backup Using the Low Level
 * API"). The copy is complete: it has the write-ahead log up to its end, and starts with the server's ordinary recovery.
 */
export async function backUpCluster(options: ClusterBackupOptions): Promise<void> {
  const { url, clusterDir, targetDir, atEnd, onBytes } = options;
  // The session is the backup: when it ends early, the server gives the backup up and removes the slot.
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000, statement_timeout: TIMEOUT_MS });
  client.on('error', () => {});
  await client.connect();
  try {
    // The slot keeps the log from the start of the backup.
    await client.query(`SELECT pg_create_physical_replication_slot('latchkey_backup', true, true)`);
    const { rows: started } = await client.query(`SELECT pg_walfile_name(pg_backup_start('latchkey', true)) AS first`);
    await copyFolder(clusterDir, targetDir, onBytes, isCopied);
    // The caller may hold up others meanwhile.
    await client.query(`SET statement_timeout = '${STOP_TIMEOUT_MS}'`);
    let stopped = { labelfile: '', spcmapfile: '', last: '' };
    await atEnd(async () => {
      const { rows } = await client.query(
        'SELECT labelfile, spcmapfile, pg_walfile_name(lsn) AS last FROM pg_backup_stop(false)',
      );
      stopped = rows[0];
    });
    if (stopped.spcmapfile) throw new Error('the database has tablespaces outside its folder, which a backup does not cover');
    await writeFile(join(targetDir, 'backup_label'), stopped.labelfile, { mode: 0o600, flush: true });
    await copyLog(clusterDir, targetDir, { first: started[0].first, last: stopped.last }, onBytes);
  } finally {
    await client.end();
  }
}

function isCopied(name: string): boolean {
  return !LEFT_OUT.test(name) && !EMPTY_FOLDERS.test(name);
}

/** The end of the backup switched to a new segment, so these hold nothing that was committed after it. */
async function copyLog(
  clusterDir: string,
  targetDir: string,
  { first, last }: { first: string; last: string },
  onBytes: (count: number) => void,
): Promise<void> {
  const names = await readdir(join(clusterDir, 'pg_wal'));
  for (const name of names.filter((name) => /^[0-9A-F]{24}$/.test(name) && name >= first && name <= last)) {
    await copyFile(join(clusterDir, 'pg_wal', name), join(targetDir, 'pg_wal', name), onBytes);
  }
}
