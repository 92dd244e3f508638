import { findFreePort } from '@latchkey/embedded/process/free-port';
import { waitUntil } from '@latchkey/embedded/process/wait-until';
import { answers, startProgram } from '@latchkey/launcher/program';
import { cpuSecondsOf, processTree, type Stat } from './process-tree.ts';

const NO_LIMIT = '1000000000';
export const SECRET_KEY = 'benchmark-secret-key-of-32-characters';
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;

export type Shape = 'standalone' | 'deployed';

/** The servers that both sides of a comparison use. */
export interface Servers {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly dataDir: string;
  readonly stops: AsyncDisposableStack;
}

export interface Side {
  readonly pid: number;
  readonly baseUrl: string;
  /** Port of live connections; the same as above for a baseline. */
  readonly livePort: number;
  measured(): Stat[];
  cpuSeconds(work: () => Promise<unknown>): Promise<number>;
}

/** Starts Latchkey without limits. */
export async function startOurs({ databaseUrl, redisUrl, dataDir, stops }: Servers, shape: Shape): Promise<Side> {
  const livePort = await findFreePort();
  const args = ['packages/launcher/src/main.ts', ...(shape === 'deployed' ? ['--deployed'] : [])];
  const side = await startSide(stops, args, {
    REALTIME_PORT: String(livePort),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    DATA_DIR: `${dataDir}/${shape}`,
    // The database has the files of both shapes.
    OBJECTS_DIR: `${dataDir}/objects`,
    SECRET_KEY,
    RATE_LIMIT_IP_PER_MINUTE: NO_LIMIT,
    RATE_LIMIT_PRINCIPAL_PER_MINUTE: NO_LIMIT,
    AUTH_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    UPLOAD_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    UPDATE_FEEDS_PER_MINUTE: NO_LIMIT,
    STORAGE_ALLOWANCE_MIB: NO_LIMIT,
    FILE_COUNT_LIMIT: NO_LIMIT,
    APPLICATIONS_LIMIT: '1000000',
  });
  // It is started last.
  await waitUntilAnswers(`http://127.0.0.1:${livePort}/asyncapi.json`);
  // The launcher collects the logs of its services, which the platform does where they are
  // deployed.
  const isMeasured = ({ pid }: Stat) => shape === 'standalone' || pid !== side.pid;
  return describeSide({ ...side, livePort, measured: () => side.measured().filter(isMeasured) });
}

export function startBaseline({ databaseUrl, dataDir, stops }: Servers): Promise<Side> {
  return startSide(stops, ['bench/harness/baseline.ts'], { DATABASE_URL: databaseUrl, DATA_DIR: dataDir });
}

export function startBareSockets({ stops }: Servers): Promise<Side> {
  return startSide(stops, ['bench/harness/bare-sockets.ts'], {});
}

async function startSide(stops: AsyncDisposableStack, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Side> {
  const port = await findFreePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const { pid, stop } = await startProgram({
    name: args.join(' '),
    args,
    env: { ...process.env, ...env, PORT: String(port) },
    readyUrl: `${baseUrl}/readyz`,
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
  stops.defer(stop);
  return describeSide({ pid, baseUrl, livePort: port, measured: () => processTree(pid) });
}

function describeSide(side: Omit<Side, 'cpuSeconds'>): Side {
  const cpuSeconds = async (work: () => Promise<unknown>) => {
    const before = cpuSecondsOf(side.measured());
    await work();
    return cpuSecondsOf(side.measured()) - before;
  };
  return { ...side, cpuSeconds };
}

export async function waitUntilAnswers(url: string): Promise<void> {
  if (!(await waitUntil(() => answers(url), { timeoutMs: START_TIMEOUT_MS }))) throw new Error(`${url} does not answer`);
}
