import { fileURLToPath } from 'node:url';
import { prepareSettingsRequest } from './account.ts';
import { type RunningChild, startChild } from './child.ts';
import { load, type Target } from './load.ts';
import { cpuSecondsOf, processTree } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

const LAUNCHER = fileURLToPath(import.meta.resolve('@latchkey/standalone/main'));
const BASELINE = fileURLToPath(new URL('./baseline.ts', import.meta.url));
const WARM_UP_SECONDS = 3;
const NO_LIMIT = '1000000000';

/** The servers that both sides use. */
export interface Servers {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly dataDir: string;
}

/** A side of the comparison. */
interface Side {
  readonly child: RunningChild;
  /** Whether the process itself only keeps others running: then they are what is measured. */
  readonly launcher: boolean;
  readonly target: Target;
}

/**
 * F1 and F2: CPU per authenticated `get-application-settings` of all our processes, over that of a bare Fastify handler with one primary-key
 * SELECT, in turns.
 */
export async function measureSettings(
  servers: Servers,
  shape: 'standalone' | 'deployed',
  rounds: number,
  seconds: number,
): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const baseline = await startBaseline(servers, ours.target.url);
  try {
    for (const side of [ours, baseline]) await load(side.target, WARM_UP_SECONDS);
    const found = { ours: [] as number[], baseline: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const a = await microsecondsPerRequest(ours, seconds);
      const b = await microsecondsPerRequest(baseline, seconds);
      found.ours.push(a);
      found.baseline.push(b);
      found.ratio.push(a / b);
    }
    return {
      id: shape === 'standalone' ? 'F1' : 'F2',
      what: `get-application-settings, ${shape}, CPU per request`,
      value: `${median(found.ours).toFixed(0)} µs`,
      baseline: `${median(found.baseline).toFixed(0)} µs`,
      result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
      goal: shape === 'standalone' ? '≤ 1.8' : '≤ 3.5',
    };
  } finally {
    await Promise.all([ours.child.stop(), baseline.child.stop()]);
  }
}

async function microsecondsPerRequest(side: Side, seconds: number): Promise<number> {
  const before = cpuSecondsOf(measured(side));
  const requests = await load(side.target, seconds);
  return ((cpuSecondsOf(measured(side)) - before) / requests) * 1e6;
}

/** What serves requests. A launcher gathers the logs of its services, which where they are deployed is the platform's work. */
function measured({ child, launcher }: Side) {
  return processTree(child.pid).filter(({ pid }) => !launcher || pid !== child.pid);
}

async function startOurs({ databaseUrl, redisUrl, dataDir }: Servers, shape: 'standalone' | 'deployed'): Promise<Side> {
  const port = shape === 'standalone' ? 18_080 : 18_081;
  const env = {
    PORT: String(port),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    DATA_DIR: `${dataDir}/${shape}`,
    SECRET_KEY: 'benchmark-secret-key-of-32-characters',
    RATE_LIMIT_IP_PER_MINUTE: NO_LIMIT,
    RATE_LIMIT_PRINCIPAL_PER_MINUTE: NO_LIMIT,
  };
  const args = [LAUNCHER, ...(shape === 'deployed' ? ['--deployed'] : [])];
  const baseUrl = `http://127.0.0.1:${port}`;
  const child = await startChild(process.execPath, args, env, `${baseUrl}/readyz`);
  return { child, launcher: shape === 'deployed', target: await prepareSettingsRequest(baseUrl) };
}

async function startBaseline({ databaseUrl }: Servers, oursUrl: string): Promise<Side> {
  const port = '18090';
  const env = { PORT: port, DATABASE_URL: databaseUrl };
  const child = await startChild(process.execPath, [BASELINE], env, `http://127.0.0.1:${port}/healthz`);
  const applicationId = new URL(oursUrl).searchParams.get('applicationId');
  return { child, launcher: false, target: { url: `http://127.0.0.1:${port}/settings?applicationId=${applicationId}` } };
}
