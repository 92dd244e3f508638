import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { copyFile, copyFolder, type OnBytes } from './copy-files.ts';
import { withClient } from './service-databases.ts';

/** PostgreSQL recreates the files of these folders. The write-ahead log is copied separately. */
const EMPTY_FOLDERS =
  /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/|(^|\/)pgsql_tmp/;
const LEFT_OUT = /^(postmaster\.(pid|opts)|current_logfiles)$|(^|\/)pg_internal\.init/;

const START_TIMEOUT_MS = 120_000;
/** Limit of the end, during which the caller may block others. */
const STOP_TIMEOUT_MS = 5_000;

/**
 * Copies a running cluster with PostgreSQL's low-level backup API (manual, "Making a Base Backup
 * Using the Low Level API"). The copy holds the write-ahead log up to its end, and so starts with
 * the server's ordinary recovery.
 *
 * @param atEnd ends the backup by calling `stop`. A restored copy shows the moment of that call.
 */
export async function backUpCluster(
  url: string,
  clusterDir: string,
  targetDir: string,
  onBytes: OnBytes,
  atEnd: (stop: () => Promise<void>) => Promise<void>,
): Promise<void> {
  // If this session ends early, the server aborts the backup and removes the slot.
  const copy = async (client: Client) => {
    // The slot retains the log from the start of the backup.
    await client.query(`SELECT pg_create_physical_replication_slot('latchkey_backup', true, true)`);
    const { rows: started } = await client.query(`SELECT pg_walfile_name(pg_backup_start('latchkey', true)) AS first`);
    await copyFolder(clusterDir, targetDir, onBytes, (name) => !LEFT_OUT.test(name) && !EMPTY_FOLDERS.test(name));
    await client.query(`SET statement_timeout = '${STOP_TIMEOUT_MS}'`);
    let stopped = { labelfile: '', spcmapfile: '', last: '' };
    await atEnd(async () => {
      const columns = 'labelfile, spcmapfile, pg_walfile_name(lsn) AS last';
      stopped = (await client.query(`SELECT ${columns} FROM pg_backup_stop(false)`)).rows[0];
    });
    if (stopped.spcmapfile) throw new Error('the database has tablespaces outside its folder, which a backup does not cover');
    await writeFile(join(targetDir, 'backup_label'), stopped.labelfile, { mode: 0o600, flush: true });
    // The end of the backup began a new segment, so these hold nothing that was committed after it.
    const isNeeded = (name: string) => /^[0-9A-F]{24}$/.test(name) && name >= started[0].first && name <= stopped.last;
    for (const name of (await readdir(join(clusterDir, 'pg_wal'))).filter(isNeeded)) {
      await copyFile(join(clusterDir, 'pg_wal', name), join(targetDir, 'pg_wal', name), onBytes);
    }
  };
  await withClient(url, copy, START_TIMEOUT_MS);
}
