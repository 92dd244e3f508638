import { readFile, rm } from 'node:fs/promises';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.ts';
import { writeSecretFile } from './secret-file.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** Keeps who our Redis is, for the next start to find it should this process be killed. */
export async function recordRedis(path: string, pid: number): Promise<void> {
  const identity = identifyProcess(pid);
  if (identity) await writeSecretFile(path, identity);
}

/** Whether the Redis that was recorded runs, as that same process. */
export async function isRedisLeft(path: string): Promise<boolean> {
  const identity = await readRecord(path);
  return identity !== undefined && isRunning(identity);
}

/** Ends the Redis that an earlier run recorded, if it is still that same process; never another. */
export async function endLeftoverRedis(path: string, onProgress?: (line: string) => void): Promise<void> {
  const identity = await readRecord(path);
  if (!identity) return;
  const gone = () => !isRunning(identity);
  if (!gone()) onProgress?.(`Ending the Redis (pid ${identity.pid}) that an earlier run left behind.`);
  for (const [signal, timeoutMs] of [
    ['SIGTERM', 15_000],
    ['SIGKILL', 5_000],
  ] as const) {
    if (gone()) break;
    try {
      process.kill(identity.pid, signal);
      // One that is suspended would not even notice.
      process.kill(identity.pid, 'SIGCONT');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'ESRCH') break;
      throw new StartError(
        `A Redis (pid ${identity.pid}) of an earlier run is still using the data and belongs to another user: end it first.`,
        { cause: err },
      );
    }
    await waitUntil(gone, { timeoutMs });
  }
  if (!gone()) throw new StartError(`A Redis (pid ${identity.pid}) of an earlier run does not end: end it first.`);
  await rm(path, { force: true });
}

async function readRecord(path: string): Promise<ProcessIdentity | undefined> {
  try {
    const { pid, startedAt } = JSON.parse(await readFile(path, 'utf8')) as Partial<ProcessIdentity>;
    return pid === undefined || startedAt === undefined ? undefined : { pid, startedAt };
  } catch {
    return undefined;
  }
}
