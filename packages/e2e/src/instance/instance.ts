import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { runServer, type ServerProcess } from '@latchkey/embedded/process/server-process';
import { ROOT } from '@latchkey/launcher/program';
import type { Shape } from '@latchkey/launcher/settings';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';

export type { Shape } from '@latchkey/launcher/settings';

/** Settings with limits that no test reaches, but for those about limits. */
export const GENEROUS_LIMITS = {
  RATE_LIMIT_IP_PER_MINUTE: '1000000',
  RATE_LIMIT_PRINCIPAL_PER_MINUTE: '1000000',
  AUTH_ATTEMPTS_PER_MINUTE: '1000000',
  SIGN_IN_FAILURES_PER_15_MINUTES: '1000000',
  API_KEYS_CREATED_PER_HOUR: '1000000',
  UPLOAD_ATTEMPTS_PER_MINUTE: '1000000',
};

/** Credential of calls between the services of test instances. */
export const SERVICE_CREDENTIAL = 'a-credential-of-the-end-to-end-tests';

/** Servers and settings of an instance. */
export interface InstanceOptions {
  readonly shape: Shape;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Settings besides the servers and the port; limits are generous unless set here. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Latchkey in separate processes, as `npm start` runs it. */
export interface Instance {
  readonly shape: Shape;
  readonly baseUrl: string;
  readonly port: number;
  readonly realtimeUrl: string;
  /** Pid of the process that was started; in the deployed shape the services are children of it. */
  readonly pid: number;
  /** Resolves with the exit code once the process has ended. */
  readonly exited: Promise<number | null>;
  readonly logDir: string;
  /** Folder of the files on disk. */
  readonly objectsDir: string;
  /** URL of the files service for other services; undefined in one process. */
  readonly filesUrl: string | undefined;
  /** Metrics URLs of the processes; none unless METRICS_PORT is set. */
  readonly metricsUrls: readonly string[];
  /** Sends SIGTERM and resolves when all has stopped. */
  stop(): Promise<void>;
}

const MAIN = `${ROOT}packages/launcher/src/main.ts`;
/** Several instances and a fleet start at the same time. */
const START_TIMEOUT_MS = 100_000;
const STOP_TIMEOUT_MS = 45_000;

/** Starts an instance and waits until it is ready. The caller stops it. */
export async function startInstance(options: InstanceOptions): Promise<Instance> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-e2e-'));
  await chmod(dataDir, 0o711);
  const port = await findFreePort();
  const realtimePort = await findFreePort();
  const process = await launch(options, dataDir, { PORT: String(port), REALTIME_PORT: String(realtimePort) });
  const baseUrl = `http://127.0.0.1:${port}`;
  let ended = false;
  const exited = process.exited.then(({ code }) => {
    ended = true;
    return code;
  });
  const stop = async () => {
    await process.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    await eventually(async () => ended || (await isReady(process, baseUrl)), { timeoutMs: START_TIMEOUT_MS, intervalMs: 25 });
    if (ended) throw new Error(`Latchkey did not start:\n${process.recentLines().join('\n')}`);
  } catch (err) {
    await stop();
    throw err;
  }
  return {
    shape: options.shape,
    baseUrl,
    port,
    realtimeUrl: `ws://127.0.0.1:${realtimePort}/api/v1/realtime`,
    pid: process.pid,
    exited,
    logDir: join(dataDir, 'logs'),
    objectsDir: join(dataDir, 'files'),
    filesUrl: /^ *files .*Connect (\S+)$/m.exec(process.recentLines().join('\n'))?.[1],
    metricsUrls: process.recentLines().flatMap((line) => /^ *Metrics +(\S+)/.exec(line)?.[1] ?? []),
    stop,
  };
}

/** True if the launcher reports a complete start, and every service answers. */
async function isReady({ recentLines }: ServerProcess, baseUrl: string): Promise<boolean> {
  if (!recentLines().includes('Ctrl-C stops it.')) return false;
  return (await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok;
}

function launch(
  { shape, databaseUrl, redisUrl, env }: InstanceOptions,
  dataDir: string,
  ports: NodeJS.ProcessEnv,
): Promise<ServerProcess> {
  return runServer({
    command: process.execPath,
    args: [MAIN, ...(shape === 'deployed' ? ['--deployed'] : [])],
    cwd: dataDir,
    env: {
      ...programEnv(),
      ...GENEROUS_LIMITS,
      SERVICE_CREDENTIALS: SERVICE_CREDENTIAL,
      HOST: '127.0.0.1',
      ...ports,
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      ...env,
    },
    stopSteps: [
      ['SIGTERM', STOP_TIMEOUT_MS],
      ['SIGKILL', 5_000],
    ],
    removeDirWhenOrphaned: dataDir,
  });
}

/** Lines of all logs with the text. They are written twice a second: use `eventually`. */
export async function findLogLines(logDir: string, text: string): Promise<string[]> {
  const files = await readdir(logDir);
  const contents = await Promise.all(files.map((file) => readFile(join(logDir, file), 'utf8')));
  return contents.flatMap((content) => content.split('\n')).filter((line) => line.includes(text));
}

/** The whole log of an instance, which is stopped, as its processes buffer their last lines. */
export async function stopForLog({ pid, exited, logDir }: Pick<Instance, 'pid' | 'exited' | 'logDir'>): Promise<string> {
  process.kill(pid, 'SIGTERM');
  await exited;
  return (await findLogLines(logDir, '')).join('\n');
}
