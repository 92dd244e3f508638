import { findFreePort } from '@latchkey/embedded/free-port';
import type { ServerProcess } from '@latchkey/embedded/server-process';
import { localUrl } from '../listen-address.ts';
import { type Supervised, supervise } from '../supervise.ts';
import { type ChildServiceOptions, startChildService } from './child-service.ts';
import { metricsUrl, type RunningShape, type ShapeOptions } from './shape.ts';

/** Settings that are each service's own here; no service gets to see another's. */
const OWN_SETTINGS = [
  'HOST',
  'PORT',
  'GRPC_PORT',
  'REALTIME_HOST',
  'REALTIME_PORT',
  'DATABASE_URL',
  'REDIS_URL',
  'SECRET_KEY',
  'SERVICE_CREDENTIALS',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
];

/** Identity's alone. The rest of what is set for issuers is no secret. */
const CLIENT_SECRET = /^OIDC_.+_CLIENT_SECRET$/;

/** Starts each service as a process of its own; they call one another over the network, on this machine only. */
export async function startDeployed(options: ShapeOptions): Promise<RunningShape> {
  const { address, realtimeAddress, servers, secrets, publicUrl } = options;
  const { databaseUrls, redisUrl: REDIS_URL } = servers;
  const { serviceCredentials: SERVICE_CREDENTIALS, secretKey: SECRET_KEY } = secrets;
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = options.env;
  const children = new Map<string, Supervised<ServerProcess>>();
  const metrics: Record<string, string> = {};
  const run = async (child: Pick<ChildServiceOptions, 'name' | 'url' | 'env'>, stopTimeoutMs = options.stopTimeoutMs) => {
    const METRICS_PORT = await chooseMetricsPort(child.name, options.env);
    if (METRICS_PORT !== undefined) metrics[child.name] = metricsUrl(Number(METRICS_PORT));
    const env = { ...child.env, METRICS_PORT, SERVICE_CREDENTIALS, REDIS_URL };
    children.set(child.name, await runChild(options, { ...child, env, stopTimeoutMs }));
  };
  const runInternal = async (name: string, env: NodeJS.ProcessEnv, stopTimeoutMs?: number) => {
    // A port is chosen when it is needed, as somebody else may take a free one meanwhile.
    const own = await internalAddress();
    await run({ name, url: own.url, env: { ...own.env, ...env } }, stopTimeoutMs);
    return own;
  };

  const apps = await runInternal('apps', { SECRET_KEY, DATABASE_URL: databaseUrls.apps });
  const APPS_URL = apps.url;
  const clientSecrets = Object.fromEntries(Object.entries(options.env).filter(([name]) => CLIENT_SECRET.test(name)));
  const identity = await runInternal('identity', {
    ...clientSecrets,
    SECRET_KEY,
    DATABASE_URL: databaseUrls.identity,
    APPS_URL,
  });
  const files = await runInternal('files', {
    SECRET_KEY,
    S3_ACCESS_KEY_ID,
    S3_SECRET_ACCESS_KEY,
    DATABASE_URL: databaseUrls.files,
    APPS_URL,
    IDENTITY_URL: identity.url,
    PUBLIC_URL: publicUrl,
    OBJECTS_DIR: options.objectsDir,
  });
  const at = { HOST: address.host, PORT: String(address.port) };
  const services = { IDENTITY_URL: identity.url, APPS_URL, FILES_URL: files.url };
  await run({ name: 'gateway', url: localUrl(address), env: { ...at, ...services } });
  const realtimeAt = { REALTIME_HOST: realtimeAddress.host, REALTIME_PORT: String(realtimeAddress.port) };
  // What is started last is stopped first: the others answer those of its clients that turn to them meanwhile.
  await runInternal('realtime', { ...realtimeAt, APPS_URL }, options.realtimeStopTimeoutMs);
  return {
    pids: () => Object.fromEntries([...children].map(([name, child]) => [name, child.current.pid])),
    internal: { apps: apps.internal, identity: identity.internal, files: files.internal },
    metrics,
  };
}

async function runChild(options: ShapeOptions, child: Omit<ChildServiceOptions, 'logs'>): Promise<Supervised<ServerProcess>> {
  const { reporter, stops, checkWanted } = options;
  return reporter.step(`Service ${child.name}`, async () => {
    const supervised = await superviseChild(options, child);
    stops.push(() => supervised.stop());
    checkWanted();
    return supervised;
  });
}

function superviseChild(options: ShapeOptions, child: Omit<ChildServiceOptions, 'logs'>) {
  const { logs } = options;
  const common = { ...options.env };
  for (const name of Object.keys(common)) {
    if (OWN_SETTINGS.includes(name) || CLIENT_SECRET.test(name)) delete common[name];
  }
  return supervise({
    name: `The service ${child.name}`,
    start: () => startChildService({ ...child, env: { ...common, ...child.env }, logs }),
    onRestart: options.reporter.warn,
    onDiskFull: options.disks.report,
    onGiveUp: options.onGiveUp,
  });
}

/** The gateway has the port that was asked for, the others any. */
async function chooseMetricsPort(name: string, { METRICS_PORT = '' }: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (METRICS_PORT === '') return undefined;
  return name === 'gateway' && Number(METRICS_PORT) !== 0 ? METRICS_PORT : String(await findFreePort());
}

async function internalAddress() {
  const [port, grpcPort] = [await findFreePort(), await findFreePort()];
  return {
    url: `http://127.0.0.1:${port}`,
    internal: { grpc: `127.0.0.1:${grpcPort}`, connect: `http://127.0.0.1:${port}` },
    env: { HOST: '127.0.0.1', PORT: String(port), GRPC_PORT: String(grpcPort) },
  };
}
