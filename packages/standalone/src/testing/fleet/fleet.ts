import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/free-port';
import { type TestAuthority, writeTlsFiles } from '@latchkey/testkit/certificates';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { Api } from '../api.ts';
import { Balancer, type BalancerOptions } from './balancer.ts';
import { FleetProcess, type FleetService } from './fleet-process.ts';
import { type FleetAddresses, settingsOf } from './fleet-settings.ts';

export type { FleetProcess, FleetService } from './fleet-process.ts';

/** What a fleet is made of. */
export interface FleetOptions {
  /** Processes of each service; two unless set. */
  readonly count?: number;
  /** Processes of the avatar worker. None unless set: the files services do its work. */
  readonly avatarWorkers?: number;
  /** Settings for every process beside those that the fleet makes; limits are generous unless set here. */
  readonly env?: NodeJS.ProcessEnv;
  /** Stand in for a database and a Redis of the fleet's own, such as a proxy before them. */
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** Signs a certificate for each process; then they speak TLS with one another. */
  readonly tls?: TestAuthority;
  /** Failed probes after which a process gets no new connections; see {@link BalancerOptions}. */
  readonly probeFailuresMax?: BalancerOptions['probeFailuresMax'];
  /** Whether all are started, and waited for; true unless set. */
  readonly start?: boolean;
  /** Puts something between a process and all that it speaks with. Nothing unless set. */
  readonly wire?: (wiring: Wiring) => Promise<Wiring>;
}

/** How a process is reached, and where it finds others. */
export interface Wiring {
  readonly name: string;
  /** Where its balancer gives it connections. */
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
}

/** Latchkey as it is deployed: several processes of each service, and a balancer before each service. */
export interface Fleet {
  /** The gateways by way of their balancer. */
  readonly baseUrl: string;
  /** The files services by way of their balancer, for other services. */
  readonly filesUrl: string;
  /** Where live connections are opened, by way of a balancer. */
  readonly realtimeUrl: string;
  /** A client without a credential, through the balancer. */
  readonly api: Api;
  /** A client without a credential for each gateway. */
  readonly gateways: readonly Api[];
  /** All processes, those first that others call. */
  readonly processes: readonly FleetProcess[];
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Folder of the files on disk. */
  readonly objectsDir: string;
  /** A log for each process, called `<name>.log`; for `findLogLines`. */
  readonly logDir: string;
  /** One of the processes of a service, counted from 1. */
  process(service: FleetService, number?: number): FleetProcess;
  processesOf(service: FleetService): readonly FleetProcess[];
  /** Ends everything and removes what it left. */
  stop(): Promise<void>;
}

const SERVICES = ['apps', 'identity', 'files', 'gateway', 'realtime'] as const;

/** Starts a fleet with a database and a Redis of its own, all processes at once. The caller stops it. */
export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-fleet-'));
  await chmod(dir, 0o711);
  const [logDir, objectsDir] = [join(dir, 'logs'), join(dir, 'files')];
  await Promise.all([mkdir(logDir), mkdir(objectsDir)]);
  const database = options.databaseUrl === undefined ? await createEmptyTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const redisUrl = options.redisUrl ?? (await testRedis()).url;
  const balancers = await openBalancers(options);
  const scheme = options.tls ? 'https' : 'http';
  const addresses: FleetAddresses = { databaseUrl, redisUrl, objectsDir, balancers, scheme };
  const processes = await createProcesses(options, addresses, { logDir, dir });
  const stop = async () => {
    await Promise.all(processes.map((one) => one.remove()));
    await Promise.all(Object.values(balancers).map((balancer) => balancer.close()));
    await database?.drop();
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  };
  if (options.start !== false) await startAll(processes, stop);
  const processesOf = (service: FleetService) => processes.filter((one) => one.service === service);
  const baseUrl = `http://127.0.0.1:${balancers.gateway.port}`;
  return {
    baseUrl,
    filesUrl: `${scheme}://127.0.0.1:${balancers.files.port}`,
    realtimeUrl: `ws://127.0.0.1:${balancers.realtime.port}/api/v1/realtime`,
    api: new Api(baseUrl),
    gateways: processesOf('gateway').map(({ url }) => new Api(url)),
    processes,
    databaseUrl,
    redisUrl,
    objectsDir,
    logDir,
    processesOf,
    process(service, number = 1) {
      const found = processesOf(service)[number - 1];
      if (!found) throw new Error(`There is no ${service}-${number}`);
      return found;
    },
    stop,
  };
}

async function openBalancers({ probeFailuresMax }: FleetOptions): Promise<FleetAddresses['balancers']> {
  const opened = SERVICES.map(async (service) => {
    // With PostgreSQL gone no gateway is ready, and clients are to have their answer all the same.
    const whenNoneIsReady = service === 'gateway' ? 'any' : 'refuse';
    return [service, await Balancer.open({ whenNoneIsReady, ...(probeFailuresMax && { probeFailuresMax }) })] as const;
  });
  return Object.fromEntries(await Promise.all(opened)) as FleetAddresses['balancers'];
}

async function createProcesses(
  { count = 2, avatarWorkers = 0, env = {}, tls, wire = async (wiring) => wiring }: FleetOptions,
  addresses: FleetAddresses,
  folders: { readonly logDir: string; readonly dir: string },
): Promise<FleetProcess[]> {
  const services = [...SERVICES.slice(0, 3), ...(avatarWorkers > 0 ? (['avatar-worker'] as const) : []), ...SERVICES.slice(3)];
  const processes: FleetProcess[] = [];
  for (const service of services) {
    for (let number = 1; number <= (service === 'avatar-worker' ? avatarWorkers : count); number += 1) {
      const [port, grpcPort] = [await findFreePort(), await findFreePort()];
      const [realtimePort, probePort] = [await findFreePort(), await findFreePort()];
      const balancer = service === 'avatar-worker' ? undefined : addresses.balancers[service];
      const name = `${service}-${number}`;
      const certificates = tls && (await writeTlsFiles(join(folders.dir, 'tls', name), await tls.issue(), tls.ca));
      // The gateway's own port is for clients, in clear.
      const secured = tls !== undefined && service !== 'gateway';
      const worker = avatarWorkers > 0 && { AVATAR_WORKER: 'apart' };
      const wired = await wire({
        name,
        port: service === 'realtime' ? realtimePort : port,
        env: {
          ...settingsOf(service, addresses, { port, grpcPort, realtimePort }),
          ...worker,
          ...certificates,
          ...(secured && { METRICS_PORT: String(probePort), METRICS_TOKEN: 'a-token-of-the-fleet-for-its-probes' }),
          ...env,
        },
      });
      processes.push(
        new FleetProcess({
          ...folders,
          name,
          service,
          env: wired.env,
          url: `${secured ? 'https' : 'http'}://127.0.0.1:${port}`,
          probeUrl: `http://127.0.0.1:${secured ? probePort : port}`,
          ...(service !== 'gateway' && { grpc: `127.0.0.1:${grpcPort}` }),
          behind: balancer ? [{ balancer, port: wired.port }] : [],
        }),
      );
    }
  }
  return processes;
}

async function startAll(processes: readonly FleetProcess[], stop: () => Promise<void>): Promise<void> {
  const started = await Promise.allSettled(processes.map((one) => one.start()));
  const failed = started.find((one) => one.status === 'rejected');
  if (!failed) return;
  await stop();
  throw failed.reason;
}
