import { chown, cp, mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { walkFiles } from './copy-files.ts';
import { preparePostgresHome, SHARED_ROOT } from './postgres-home.ts';

export type CopiedCluster = Awaited<ReturnType<typeof prepareCopiedCluster>>;

/** Creates an empty folder for the copy of a cluster, where `startPostgres` finds it. */
export async function prepareCopiedCluster(dataDir: string) {
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
    /** Gives the files to the user that the server runs as. */
    async handOver() {
      if (!user) return;
      await chown(clusterDir, user.uid, user.gid);
      for await (const { path } of walkFiles(clusterDir)) await chown(path, user.uid, user.gid);
    },
    /** Moves a relocated cluster below the data folder. The server is stopped. */
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
