import { findFreePort } from '@latchkey/embedded/process/free-port';
import { localUrl } from '../addresses.ts';
import { type Launch, metricsUrl, type RunningShape } from '../launch.ts';
import { startProgram } from '../program.ts';
import type { DatabaseService, Servers } from '../servers.ts';
import { supervise } from '../supervise.ts';

const SERVICES = ['apps', 'identity', 'files', 'gateway', 'realtime'] as const;
type Service = (typeof SERVICES)[number];

/** Settings that differ between the services, or that only one of them may see. */
const NOT_SHARED = [
  'HOST',
  'PORT',
  'GRPC_PORT',
  'REALTIME_HOST',
  'REALTIME_PORT',
  'METRICS_PORT',
  'DATABASE_URL',
  'REDIS_URL',
  'SECRET_KEY',
  'SERVICE_CREDENTIALS',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'SMTP_URL',
];
const OIDC_CLIENT_SECRET = /^OIDC_.+_CLIENT_SECRET$/;
/** Settings that each service receives unchanged. */
const PASSED_ON: Partial<Record<Service, RegExp>> = {
  files: /^S3_(ACCESS_KEY_ID|SECRET_ACCESS_KEY)$/,
  identity: /^(OIDC_.+_CLIENT_SECRET|SMTP_URL)$/,
};

/** Options of Node.js, the same as in docker-compose.yml and the chart. */
const NODE_OPTIONS: Partial<Record<Service, readonly string[]>> = { realtime: ['--max-semi-space-size=8'] };

/** Starts each service as a process. They call one another on 127.0.0.1. */
export async function startDeployed(launch: Launch, servers: Servers): Promise<RunningShape> {
  const { address, realtimeAddress, reporter, stops, signal } = launch;
  const ports = await choosePorts(launch.env);
  const url = (service: Service) => (service === 'gateway' ? localUrl(address) : `http://127.0.0.1:${ports[service].port}`);
  const urls = { apps: url('apps'), identity: url('identity'), files: url('files') };
  // Services stop in reverse order: the others answer the clients of realtime meanwhile.
  for (const service of SERVICES) {
    const { port, grpcPort, metricsPort } = ports[service];
    const internal = { HOST: '127.0.0.1', PORT: String(port), GRPC_PORT: String(grpcPort) };
    const REALTIME_PORT = String(realtimeAddress.port);
    const listening: Partial<Record<Service, NodeJS.ProcessEnv>> = {
      gateway: { HOST: address.host, PORT: String(address.port), REALTIME_PORT },
      realtime: { ...internal, REALTIME_HOST: realtimeAddress.host, REALTIME_PORT },
    };
    const env = {
      ...selectSettings(launch.env, service),
      ...connectingSettings(service, launch, servers, urls),
      ...(listening[service] ?? internal),
      METRICS_PORT: metricsPort,
    };
    await reporter.step(`Service ${service}`, async () => {
      const child = await superviseService(launch, service, env, url(service));
      stops.defer(() => child.stop());
      signal.throwIfAborted();
    });
  }
  const called = Object.entries(urls) as Array<[keyof typeof urls, string]>;
  return {
    internal: Object.fromEntries(called.map(([name, connect]) => [name, { grpc: `127.0.0.1:${ports[name].grpcPort}`, connect }])),
    metrics: Object.fromEntries(
      SERVICES.flatMap((name) => (ports[name].metricsPort ? [[name, metricsUrl(Number(ports[name].metricsPort))]] : [])),
    ),
  };
}

function superviseService(launch: Launch, service: Service, env: NodeJS.ProcessEnv, url: string) {
  const { logs, reporter, onDiskFull, onGiveUp } = launch;
  const name = `The service ${service}`;
  return supervise({
    name,
    start: () =>
      startProgram({
        name,
        args: [...(NODE_OPTIONS[service] ?? []), `services/${service}/src/main.ts`],
        env,
        readyUrl: `${url}/readyz`,
        stopTimeoutMs: service === 'realtime' ? launch.realtimeStopTimeoutMs : launch.stopTimeoutMs,
        onLine: (line) => (line.startsWith('{') ? logs.write(line) : logs.writeText(service, line)),
      }),
    onRestart: reporter.warn,
    onDiskFull,
    onGiveUp,
  });
}

function selectSettings(env: NodeJS.ProcessEnv, service: Service): NodeJS.ProcessEnv {
  const isPassedOn = (name: string) =>
    PASSED_ON[service]?.test(name) || !(NOT_SHARED.includes(name) || OIDC_CLIENT_SECRET.test(name));
  return Object.fromEntries(Object.entries(env).filter(([name]) => isPassedOn(name)));
}

/** The settings that connect one service with the rest. It gets no secret of another. */
function connectingSettings(service: Service, launch: Launch, servers: Servers, urls: Record<DatabaseService, string>) {
  const { secretKey, serviceCredentials } = launch.secrets;
  const { apps: APPS_URL, identity: IDENTITY_URL, files: FILES_URL } = urls;
  const stored = (name: DatabaseService) => ({ SECRET_KEY: secretKey, DATABASE_URL: servers.databaseUrls[name] });
  const own: Readonly<Record<Service, NodeJS.ProcessEnv>> = {
    apps: stored('apps'),
    identity: { ...stored('identity'), APPS_URL, PUBLIC_URL: launch.publicUrl },
    files: { ...stored('files'), APPS_URL, IDENTITY_URL, PUBLIC_URL: launch.publicUrl, OBJECTS_DIR: launch.objectsDir },
    gateway: { APPS_URL, IDENTITY_URL, FILES_URL },
    realtime: { APPS_URL },
  };
  return { ...own[service], REDIS_URL: servers.redisUrl, SERVICE_CREDENTIALS: serviceCredentials };
}

/** With metrics, the gateway has the configured port, and the others any. */
async function choosePorts({ METRICS_PORT = '' }: NodeJS.ProcessEnv) {
  const chosen = SERVICES.map(async (service) => {
    const isGiven = METRICS_PORT === '' || (service === 'gateway' && Number(METRICS_PORT) !== 0);
    const metricsPort = isGiven ? METRICS_PORT : String(await findFreePort());
    return [service, { port: await findFreePort(), grpcPort: await findFreePort(), metricsPort }] as const;
  });
  type Ports = Awaited<(typeof chosen)[number]>[1];
  return Object.fromEntries(await Promise.all(chosen)) as Record<Service, Ports>;
}
