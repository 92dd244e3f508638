import { programEnv } from '@latchkey/testkit/program-env';
import { GENEROUS_LIMITS, SERVICE_CREDENTIAL } from '../instance.ts';
import type { Balancer } from './balancer.ts';
import type { FleetService } from './fleet-process.ts';

/** Where what the processes need is. */
export interface FleetAddresses {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly objectsDir: string;
  /** Of calls between services. */
  readonly scheme: 'http' | 'https';
  /** What stands before the processes of each service. */
  readonly balancers: Readonly<Record<Exclude<FleetService, 'avatar-worker'>, Balancer>>;
}

/** The ports of one process. */
export interface FleetPorts {
  readonly port: number;
  readonly grpcPort: number;
  /** Taken by realtime alone. */
  readonly realtimePort: number;
}

const SECRET_KEY = 'a-secret-key-of-the-end-to-end-tests';

/** Every setting of one process, as a deployment gives them: no service gets to see another's secrets. */
export function settingsOf(service: FleetService, addresses: FleetAddresses, ports: FleetPorts): NodeJS.ProcessEnv {
  const { databaseUrl, redisUrl, balancers } = addresses;
  const at = (name: keyof FleetAddresses['balancers'], scheme: string = addresses.scheme) =>
    `${scheme}://127.0.0.1:${balancers[name].port}`;
  const common = {
    ...programEnv(),
    ...GENEROUS_LIMITS,
    HOST: '127.0.0.1',
    PORT: String(ports.port),
    SERVICE_CREDENTIALS: SERVICE_CREDENTIAL,
    REDIS_URL: redisUrl,
    PUBLIC_URL: at('gateway', 'http'),
  };
  const rpc = { ...common, GRPC_PORT: String(ports.grpcPort) };
  const stored = { ...rpc, DATABASE_URL: databaseUrl, SECRET_KEY };
  const filesSettings = { ...stored, APPS_URL: at('apps'), IDENTITY_URL: at('identity'), OBJECTS_DIR: addresses.objectsDir };
  const settings: Readonly<Record<FleetService, NodeJS.ProcessEnv>> = {
    apps: stored,
    identity: { ...stored, APPS_URL: at('apps') },
    files: filesSettings,
    'avatar-worker': filesSettings,
    gateway: { ...common, APPS_URL: at('apps'), IDENTITY_URL: at('identity'), FILES_URL: at('files') },
    realtime: { ...rpc, REALTIME_HOST: '127.0.0.1', REALTIME_PORT: String(ports.realtimePort), APPS_URL: at('apps') },
  };
  return settings[service];
}
