import { chown, cp, mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { walkFiles } from './copy-files.ts';
import { preparePostgresHome, SHARED_ROOT } from './postgres-home.ts';

/** The folder for the copy of a cluster in a data folder, where `startPostgres` finds it. */
export interface CopiedCluster {
  readonly clusterDir: string;
  readonly credentialsPath: string;
  handOver(): Promise<void>;
  /**
   * Moves a relocated cluster (`preparePostgresHome`) below the data folder. The server is
   * stopped.
   */
  bringHome(): Promise<void>;
  discard(): Promise<void>;
}

/** Creates an empty folder for a cluster in a data folder without one. */
export async function prepareCopiedCluster(dataDir: string): Promise<CopiedCluster> {
  const realDir = await realpath(dataDir);
  const { dir, clusterDir, credentialsPath, user } = await preparePostgresHome(realDir, SHARED_ROOT);
  await mkdir(clusterDir, { mode: 0o700 });
  const usualDir = join(realDir, 'postgres');
  const discard = async () => {
    if (dir !== usualDir) await rm(dir, { recursive: true, force: true });
  };
  return {
    clusterDir,
    credentialsPath,
    async handOver() {
      if (!user) return;
      await chown(clusterDir, user.uid, user.gid);
      for await (const { path } of walkFiles(clusterDir)) await chown(path, user.uid, user.gid);
    },
    async bringHome() {
      if (dir === usualDir) return;
      for (const name of ['data', 'credentials.json']) {
        await cp(join(dir, name), join(usualDir, name), { recursive: true, preserveTimestamps: true });
      }
      await rm(join(usualDir, 'relocated.json'));
      await discard();
    },
    discard,
  };
}
