import { fileURLToPath } from 'node:url';
import { findFreePort } from '@latchkey/embedded/free-port';
import { type RunningChild, startChild, waitUntilAnswers } from './child.ts';
import { processTree, type Stat } from './process-tree.ts';

const LAUNCHER = fileURLToPath(import.meta.resolve('@latchkey/standalone/main'));
const NO_LIMIT = '1000000000';

export type Shape = 'standalone' | 'deployed';

/** The servers that both sides of a comparison use. */
export interface Servers {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly dataDir: string;
}

/** A program that is measured. */
export interface Side {
  readonly child: RunningChild;
  readonly baseUrl: string;
  /** Where live connections are opened; the same as above for a baseline. */
  readonly livePort: number;
  /** The processes that serve requests, as they are now. */
  measured(): Stat[];
}

/** Starts Latchkey without limits in the way. */
export async function startOurs({ databaseUrl, redisUrl, dataDir }: Servers, shape: Shape): Promise<Side> {
  const [port, livePort] = [await findFreePort(), await findFreePort()];
  const env = {
    PORT: String(port),
    REALTIME_PORT: String(livePort),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    DATA_DIR: `${dataDir}/${shape}`,
    // The database has the files of both.
    OBJECTS_DIR: `${dataDir}/objects`,
    SECRET_KEY: 'benchmark-secret-key-of-32-characters',
    RATE_LIMIT_IP_PER_MINUTE: NO_LIMIT,
    RATE_LIMIT_PRINCIPAL_PER_MINUTE: NO_LIMIT,
    AUTH_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    UPLOAD_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    STORAGE_ALLOWANCE_MIB: NO_LIMIT,
    FILE_COUNT_LIMIT: NO_LIMIT,
    APPLICATIONS_LIMIT: '1000000',
  };
  const args = [LAUNCHER, ...(shape === 'deployed' ? ['--deployed'] : [])];
  const baseUrl = `http://127.0.0.1:${port}`;
  const child = await startChild(process.execPath, args, env, `${baseUrl}/readyz`);
  // It is started last.
  await waitUntilAnswers(`http://127.0.0.1:${livePort}/asyncapi.json`);
  // A launcher gathers the logs of its services, which where they are deployed is the platform's work.
  const measured = () => processTree(child.pid).filter(({ pid }) => shape === 'standalone' || pid !== child.pid);
  return { child, baseUrl, livePort, measured };
}

/** Starts the baseline of what is asked for over HTTP. */
export async function startBaseline({ databaseUrl, dataDir }: Servers): Promise<Side> {
  return startProgram('./baseline.ts', { DATABASE_URL: databaseUrl, DATA_DIR: dataDir });
}

/** Starts the baseline of live connections. */
export async function startBareSockets(): Promise<Side> {
  return startProgram('./bare-sockets.ts', {});
}

async function startProgram(path: string, env: NodeJS.ProcessEnv): Promise<Side> {
  const port = await findFreePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const program = fileURLToPath(new URL(path, import.meta.url));
  const child = await startChild(process.execPath, [program], { ...env, PORT: String(port) }, `${baseUrl}/healthz`);
  return { child, baseUrl, livePort: port, measured: () => processTree(child.pid) };
}
