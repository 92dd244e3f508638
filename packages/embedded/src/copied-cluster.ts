import { chown, cp, mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { walkFiles } from './copy-files.ts';
import { preparePostgresHome, SHARED_ROOT } from './postgres-home.ts';

/** A place for the copy of a cluster in a data folder, where `startPostgres` finds it. */
export interface CopiedCluster {
  readonly clusterDir: string;
  readonly credentialsPath: string;
  /** Gives the files to the user that the server runs as. */
  handOver(): Promise<void>;
  /** Moves the cluster below the data folder if it had to go elsewhere (`preparePostgresHome`). The server is stopped. */
  bringHome(): Promise<void>;
  /** Removes a cluster that had to go elsewhere. */
  discard(): Promise<void>;
}

/** Makes an empty folder for a cluster in a data folder without one. */
export async function prepareCopiedCluster(dataDir: string): Promise<CopiedCluster> {
  const home = await preparePostgresHome({ dataDir: await realpath(dataDir), sharedRoot: SHARED_ROOT });
  await mkdir(home.clusterDir, { mode: 0o700 });
  const usualDir = join(await realpath(dataDir), 'postgres');
  const discard = async () => {
    if (home.dir !== usualDir) await rm(home.dir, { recursive: true, force: true });
  };
  return {
    clusterDir: home.clusterDir,
    credentialsPath: home.credentialsPath,
    async handOver() {
      if (!home.user) return;
      const { uid, gid } = home.user;
      await chown(home.clusterDir, uid, gid);
      for await (const { path } of walkFiles(home.clusterDir)) await chown(path, uid, gid);
    },
    async bringHome() {
      if (home.dir === usualDir) return;
      for (const name of ['data', 'credentials.json']) {
        await cp(join(home.dir, name), join(usualDir, name), { recursive: true, preserveTimestamps: true });
      }
      await rm(join(usualDir, 'relocated.json'));
      await discard();
    },
    discard,
  };
}
