import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import type { Shape } from '@latchkey/launcher/settings';
import { eventually } from '@latchkey/testkit/eventually';
import { createDataDir, startLauncher } from './launcher-process.ts';

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

const READY = { timeoutMs: 30_000, intervalMs: 25 };

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
  /** Metrics URLs of the processes; none unless METRICS_PORT is set. */
  readonly metricsUrls: readonly string[];
  /** Sends SIGTERM and resolves when all has stopped. */
  stop(): Promise<void>;
}

/** Starts an instance and waits until it is ready. The caller stops it. */
export async function startInstance({ shape, databaseUrl, redisUrl, env }: InstanceOptions): Promise<Instance> {
  const dir = await createDataDir();
  const [port, realtimePort] = [await findFreePort(), await findFreePort()];
  const baseUrl = `http://127.0.0.1:${port}`;
  const settings = {
    ...GENEROUS_LIMITS,
    SERVICE_CREDENTIALS: SERVICE_CREDENTIAL,
    HOST: '127.0.0.1',
    PORT: String(port),
    REALTIME_PORT: String(realtimePort),
    DATA_DIR: dir.path,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    ...env,
  };
  const launcher = await startLauncher(settings, shape === 'deployed' ? ['--deployed'] : [], dir.path);
  const stop = async () => {
    await launcher.stop();
    await dir.remove();
  };
  try {
    await launcher.running;
    await eventually(async () => (await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok, READY);
  } catch (err) {
    await stop();
    throw err;
  }
  return {
    ...{ shape, baseUrl, port, stop },
    realtimeUrl: `ws://127.0.0.1:${realtimePort}/api/v1/realtime`,
    pid: launcher.pid,
    exited: launcher.exited.then(({ code }) => code),
    logDir: join(dir.path, 'logs'),
    objectsDir: join(dir.path, 'files'),
    metricsUrls: [...launcher.output().matchAll(/^ *Metrics +(\S+)/gm)].map(([, url = '']) => url),
  };
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
