import { fileURLToPath } from 'node:url';
import { type RunningChild, startChild } from './child.ts';
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
  /** The processes that serve requests, as they are now. */
  measured(): Stat[];
}

/** Starts Latchkey without limits in the way. */
export async function startOurs({ databaseUrl, redisUrl, dataDir }: Servers, shape: Shape): Promise<Side> {
  const port = shape === 'standalone' ? 18_080 : 18_081;
  const env = {
    PORT: String(port),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    DATA_DIR: `${dataDir}/${shape}`,
    SECRET_KEY: 'benchmark-secret-key-of-32-characters',
    RATE_LIMIT_IP_PER_MINUTE: NO_LIMIT,
    RATE_LIMIT_PRINCIPAL_PER_MINUTE: NO_LIMIT,
    AUTH_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    UPLOAD_ATTEMPTS_PER_MINUTE: NO_LIMIT,
    STORAGE_ALLOWANCE_MIB: NO_LIMIT,
    FILE_COUNT_LIMIT: NO_LIMIT,
  };
  const args = [LAUNCHER, ...(shape === 'deployed' ? ['--deployed'] : [])];
  const baseUrl = `http://127.0.0.1:${port}`;
  const child = await startChild(process.execPath, args, env, `${baseUrl}/readyz`);
  // A launcher gathers the logs of its services, which where they are deployed is the platform's work.
  const measured = () => processTree(child.pid).filter(({ pid }) => shape === 'standalone' || pid !== child.pid);
  return { child, baseUrl, measured };
}

/** Starts the baseline. */
export async function startBaseline({ databaseUrl, dataDir }: Servers): Promise<Side> {
  const baseUrl = 'http://127.0.0.1:18090';
  const program = fileURLToPath(new URL('./baseline.ts', import.meta.url));
  const env = { PORT: '18090', DATABASE_URL: databaseUrl, DATA_DIR: dataDir };
  const child = await startChild(process.execPath, [program], env, `${baseUrl}/healthz`);
  return { child, baseUrl, measured: () => processTree(child.pid) };
}
