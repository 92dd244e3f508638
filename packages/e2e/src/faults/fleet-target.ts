import { randomBytes } from 'node:crypto';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { startOwnPostgres } from '@latchkey/testkit/postgres/own-postgres';
import { startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { type Fleet, type FleetProcess, startFleet, type Wiring } from '../instance/fleet/fleet.ts';
import { SERVICE_CREDENTIAL } from '../instance/instance.ts';
import type { OwnStore } from './standalone-target.ts';
import { viewOfDisk } from './stored-state.ts';
import { DATABASE_ERROR_MS_MAX, type Fault, SETTINGS, type Target } from './target.ts';

/** Settings that name what a process calls. */
const CALLED = ['DATABASE_URL', 'REDIS_URL', 'APPS_URL', 'IDENTITY_URL', 'FILES_URL'];

type Link = Readonly<Record<'inward', TcpProxy> & Record<'outward', readonly TcpProxy[]>>;

/** Starts two processes of each service behind proxies, on their own PostgreSQL and Redis. */
export async function startFleetTarget(own?: OwnStore): Promise<Target> {
  const [postgres, redis] = await Promise.all([startOwnPostgres(), startOwnRedis()]);
  const links = new Map<string, Link>();
  // A process that hangs gets no new connections while the fault lasts.
  const fleet = await startFleet({
    ...{ avatarWorkers: 2, databaseUrl: postgres.url, redisUrl: redis.url, probeFailuresMax: 2 },
    env: { ...SETTINGS, DRAIN_SECONDS: '1', ...own?.env },
    wire: (wiring) => wire(wiring, links),
  });
  const { baseUrl, realtimeUrl, gateways, processes } = fleet;
  const faults = [
    ...processes.flatMap((one) => faultsOf(one, links.get(one.name) as Link)),
    rotation(fleet),
    ...(['stopped', 'killed', 'frozen'] as const).flatMap((how) => [
      serverFault(`Redis ${how}`, redis, how, { costs: 'avatars' }),
      serverFault(`PostgreSQL ${how}`, postgres, how, { costs: 'errors', errorMsMax: DATABASE_ERROR_MS_MAX }),
    ]),
  ];
  return {
    ...{ baseUrl, realtimeUrl },
    gateways: gateways.map((gateway) => gateway.baseUrl),
    store: own?.store ?? viewOfDisk(fleet.objectsDir),
    faults,
    kills: faults.filter(({ name }) => name.endsWith(' killed')),
    databaseUrl: async () => postgres.url,
    isReady: async () => (await Promise.all(processes.map((one) => one.isReady()))).every(Boolean),
    output: () => '',
    async stop() {
      await fleet.stop();
      await Promise.all([...links.values()].flatMap(({ inward, outward }) => [inward, ...outward].map((proxy) => proxy.close())));
      await Promise.all([postgres.remove(), redis.remove(), own?.stop()]);
    },
  };
}

async function wire({ name, port, env }: Wiring, links: Map<string, Link>): Promise<Wiring> {
  const inward = await startTcpProxy(`http://127.0.0.1:${port}`);
  const called = CALLED.flatMap((setting) => (env[setting] === undefined ? [] : [[setting, env[setting]] as const]));
  const outward = await Promise.all(called.map(([, url]) => startTcpProxy(url)));
  links.set(name, { inward, outward });
  const proxied = called.map(([setting], i) => [setting, outward[i]?.url.replace(/\/$/, '')]);
  return { name, port: Number(new URL(inward.url).port), env: { ...env, ...Object.fromEntries(proxied) } };
}

/** A frozen process answers no request; one that is cut off still answers its probes. */
function faultsOf(one: FleetProcess, { inward, outward }: Link): Fault[] {
  const proxies = [inward, ...outward];
  const costs = one.service === 'gateway' ? 'anything' : 'errors';
  const restore = () => Promise.all(proxies.map((proxy) => proxy.restore()));
  const partition = () => {
    for (const proxy of proxies) proxy.freeze();
  };
  return [
    { name: `${one.name} killed`, costs, breakIt: () => one.kill(), repair: () => one.start() },
    { name: `${one.name} frozen`, costs, breakIt: () => one.freeze(), repair: () => one.thaw() },
    { name: `${one.name} cut off`, costs, breakIt: partition, repair: restore },
    { name: `${one.name} refusing`, costs, breakIt: () => inward.cut(), repair: restore },
    {
      ...{ name: `${one.name} restarted`, costs: 'nothing', closesSockets: one.service === 'realtime' },
      breakIt: () => one.restart(),
      repair: () => undefined,
    },
  ];
}

/** Changes the credential between services, one half of all processes after the other. */
function rotation({ processes }: Fleet): Fault {
  const next = randomBytes(24).toString('base64url');
  const steps = [`${SERVICE_CREDENTIAL},${next}`, `${next},${SERVICE_CREDENTIAL}`, next, `${next},${SERVICE_CREDENTIAL}`];
  const breakIt = async () => {
    for (const SERVICE_CREDENTIALS of steps) {
      for (const half of ['1', '2']) {
        for (const one of processes) await one.ready();
        const some = processes.filter(({ name }) => name.endsWith(half));
        await Promise.all(some.map((one) => one.restart({ SERVICE_CREDENTIALS })));
      }
    }
  };
  return { name: 'credential rotated', costs: 'nothing', closesSockets: true, breakIt, repair: () => undefined };
}

interface Server {
  stop(): unknown;
  kill(): unknown;
  freeze(): unknown;
  start(): unknown;
  thaw(): unknown;
}

function serverFault(
  name: string,
  server: Server,
  how: 'stopped' | 'killed' | 'frozen',
  costs: Pick<Fault, 'costs' | 'errorMsMax'>,
): Fault {
  const breakIt = { stopped: server.stop, killed: server.kill, frozen: server.freeze }[how];
  return { name, ...costs, breakIt, repair: how === 'frozen' ? server.thaw : server.start };
}
