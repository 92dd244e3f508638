import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { type TestAuthority, writeTlsFiles } from '@latchkey/testkit/network/certificates';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { Api } from '../../client/api.ts';
import { GENEROUS_LIMITS, SERVICE_CREDENTIAL } from '../instance.ts';
import { type Balancer, openBalancer } from './balancer.ts';
import { createFleetProcess, type FleetProcess, type FleetService } from './fleet-process.ts';

export type { FleetProcess, FleetService } from './fleet-process.ts';

export interface FleetOptions {
  /** Processes of each service; two unless set. */
  readonly count?: number;
  /** Processes of the avatar worker. Without any, the files services do its work. */
  readonly avatarWorkers?: number;
  /** Further settings of every process; limits are generous unless set here. */
  readonly env?: NodeJS.ProcessEnv;
  /** Replace its database and Redis, such as a proxy before them. */
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** Signs a certificate for each process; then they speak TLS with one another. */
  readonly tls?: TestAuthority;
  readonly probeFailuresMax?: number;
  /** True if all are started and ready; true unless set. */
  readonly start?: boolean;
  /** Puts something between a process and all that it speaks with. */
  readonly wire?: (wiring: Wiring) => Promise<Wiring>;
}

/** Addresses of a process and of its peers. */
export interface Wiring {
  readonly name: string;
  /** Port behind the balancer. */
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
}

/** Latchkey as it is deployed: processes of each service behind a balancer. */
export interface Fleet {
  /** The gateways, by their balancer; so is realtime. */
  readonly baseUrl: string;
  readonly realtimeUrl: string;
  /** A client without a credential, by the balancer, and one for each gateway. */
  readonly api: Api;
  readonly gateways: readonly Api[];
  /** All processes; those that others call come first. */
  readonly processes: readonly FleetProcess[];
  readonly databaseUrl: string;
  readonly objectsDir: string;
  /** One log for each process, `<name>.log`. */
  readonly logDir: string;
  process(service: FleetService): FleetProcess;
  processesOf(service: FleetService): readonly FleetProcess[];
  stop(): Promise<void>;
}

const SERVICES = ['apps', 'identity', 'files', 'gateway', 'realtime'] as const;

/** Requirements of the processes, and the folders of the fleet. */
interface Surroundings {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly objectsDir: string;
  readonly logDir: string;
  readonly dir: string;
  readonly balancers: Readonly<Record<(typeof SERVICES)[number], Balancer>>;
}

/** Starts all processes of a fleet at the same time. The caller stops it. */
export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-fleet-'));
  await chmod(dir, 0o711);
  const [logDir, objectsDir] = [join(dir, 'logs'), join(dir, 'files')];
  await Promise.all([mkdir(logDir), mkdir(objectsDir)]);
  const database = options.databaseUrl === undefined ? await createEmptyTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const redisUrl = options.redisUrl ?? (await testRedis()).url;
  const balancers = await openBalancers(options);
  const processes = await createProcesses(options, { databaseUrl, redisUrl, objectsDir, logDir, dir, balancers });
  const stop = async () => {
    await Promise.all(processes.map((one) => one.remove()));
    await Promise.all(Object.values(balancers).map((balancer) => balancer.close()));
    await database?.drop();
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  };
  if (options.start !== false) {
    const failed = (await Promise.allSettled(processes.map((one) => one.start()))).find(({ status }) => status === 'rejected');
    if (failed) await stop();
    if (failed?.status === 'rejected') throw failed.reason;
  }
  const processesOf = (service: FleetService) => processes.filter((one) => one.service === service);
  const baseUrl = `http://127.0.0.1:${balancers.gateway.port}`;
  return {
    baseUrl,
    realtimeUrl: `ws://127.0.0.1:${balancers.realtime.port}/api/v1/realtime`,
    api: new Api(baseUrl),
    gateways: processesOf('gateway').map(({ url }) => new Api(url)),
    ...{ processes, databaseUrl, objectsDir, logDir, processesOf, stop },
    process(service) {
      const [first] = processesOf(service);
      if (!first) throw new Error(`There is no ${service}`);
      return first;
    },
  };
}

async function openBalancers({ probeFailuresMax }: FleetOptions): Promise<Surroundings['balancers']> {
  const opened = SERVICES.map(async (service) => {
    // Without PostgreSQL no gateway is ready, and clients get an error response all the same.
    const whenNoneIsReady = service === 'gateway' ? 'any' : 'refuse';
    return [service, await openBalancer({ whenNoneIsReady, ...(probeFailuresMax && { probeFailuresMax }) })] as const;
  });
  return Object.fromEntries(await Promise.all(opened)) as Surroundings['balancers'];
}

async function createProcesses(options: FleetOptions, surroundings: Surroundings): Promise<FleetProcess[]> {
  const { count = 2, avatarWorkers = 0 } = options;
  const workers = Array<FleetService>(avatarWorkers).fill('avatar-worker');
  const services = SERVICES.flatMap((service) => Array<FleetService>(count).fill(service));
  const processes: FleetProcess[] = [];
  for (const service of [...services, ...workers]) {
    const number = processes.filter((one) => one.service === service).length + 1;
    processes.push(await createProcess(`${service}-${number}`, service, options, surroundings));
  }
  return processes;
}

async function createProcess(name: string, service: FleetService, options: FleetOptions, surroundings: Surroundings) {
  const { tls, avatarWorkers = 0, env = {}, wire = async (wiring) => wiring } = options;
  const [port = 0, grpcPort, realtimePort = 0] = await Promise.all(Array.from({ length: 3 }, () => findFreePort()));
  const certificate = tls && { ...(await tls.issue()), ca: tls.ca };
  // The gateway's own port is for clients, without TLS.
  const isSecured = tls !== undefined && service !== 'gateway';
  const wired = await wire({
    name,
    port: service === 'realtime' ? realtimePort : port,
    env: {
      ...settingsOf(service, surroundings, tls ? 'https' : 'http'),
      PORT: String(port),
      ...(service !== 'gateway' && { GRPC_PORT: String(grpcPort) }),
      ...(service === 'realtime' && { REALTIME_PORT: String(realtimePort) }),
      ...(avatarWorkers > 0 && { AVATAR_WORKER: 'apart' }),
      ...(certificate && (await writeTlsFiles(join(surroundings.dir, 'tls', name), certificate, certificate.ca))),
      ...env,
    },
  });
  return createFleetProcess({
    ...{ name, service, env: wired.env, logDir: surroundings.logDir, dir: surroundings.dir },
    url: `${isSecured ? 'https' : 'http'}://127.0.0.1:${port}`,
    tls: isSecured ? certificate : undefined,
    ...(service !== 'gateway' && { grpc: `127.0.0.1:${grpcPort}` }),
    behind: service === 'avatar-worker' ? undefined : { balancer: surroundings.balancers[service], port: wired.port },
  });
}

/** The settings of one service, as a deployment sets them: none gets another's secrets. */
function settingsOf(
  service: FleetService,
  { databaseUrl, redisUrl, objectsDir, balancers }: Surroundings,
  scheme: string,
): NodeJS.ProcessEnv {
  const at = (name: keyof typeof balancers) => `${scheme}://127.0.0.1:${balancers[name].port}`;
  const stored = { DATABASE_URL: databaseUrl, SECRET_KEY: 'a-secret-key-of-the-end-to-end-tests' };
  const files = { ...stored, APPS_URL: at('apps'), IDENTITY_URL: at('identity'), OBJECTS_DIR: objectsDir };
  const own: Readonly<Record<FleetService, NodeJS.ProcessEnv>> = {
    apps: stored,
    identity: { ...stored, APPS_URL: at('apps') },
    files,
    'avatar-worker': files,
    gateway: { APPS_URL: at('apps'), IDENTITY_URL: at('identity'), FILES_URL: at('files') },
    realtime: { APPS_URL: at('apps') },
  };
  const publicUrl = `http://127.0.0.1:${balancers.gateway.port}`;
  const common = { HOST: '127.0.0.1', SERVICE_CREDENTIALS: SERVICE_CREDENTIAL, REDIS_URL: redisUrl, PUBLIC_URL: publicUrl };
  return { ...programEnv(), ...GENEROUS_LIMITS, ...common, ...own[service] };
}
