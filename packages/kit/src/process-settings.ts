import { z } from 'zod';
import { integerSetting, portSetting, readConfig, readTogether, serviceCredentialsSetting } from './config.ts';
import { checkServiceTls, serviceTlsSettings } from './tls/tls-settings.ts';

/** The ports that a process takes by default. */
interface DefaultPorts {
  readonly port: number;
  readonly grpcPort: number;
}

/** Settings of a service that has no database as a process of its own. */
export function processSettingsWithoutDatabase(ports: DefaultPorts) {
  return {
    HOST: z.string().default('0.0.0.0'),
    PORT: portSetting.default(ports.port),
    GRPC_PORT: portSetting.default(ports.grpcPort),
    /** Connections of one address, an IPv6 /64, on each of the ports. */
    CONNECTIONS_PER_IP: integerSetting(1, 1_000_000).default(1_000),
    SERVICE_CREDENTIALS: serviceCredentialsSetting,
    ...serviceTlsSettings,
  };
}

/** Settings of a service that has a database as a process of its own. */
export function processSettings(ports: DefaultPorts) {
  return {
    ...processSettingsWithoutDatabase(ports),
    MIGRATE_ON_START: z.enum(['true', 'false'], 'must be true or false').default('true'),
  };
}

/**
 * Reads the settings of a process that other services call, or that calls them: with TLS or without, but all alike.
 *
 * @param read reads those of the schema, where that takes more than {@link readConfig}
 * @throws ConfigError naming all problems, those of the certificate included
 */
export function readProcessConfig<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv): z.output<T>;
export function readProcessConfig<C>(schema: z.ZodObject, env: NodeJS.ProcessEnv, read: () => C): C;
export function readProcessConfig(
  schema: z.ZodObject,
  env: NodeJS.ProcessEnv,
  read = (): unknown => readConfig(schema, env),
): unknown {
  const urlNames = ['IDENTITY_URL', 'APPS_URL', 'FILES_URL'].filter((name) => Object.hasOwn(schema.shape, name));
  const [config] = readTogether(read, () => checkServiceTls(env, urlNames));
  return config;
}

type SettingsOf<T extends z.core.$ZodLooseShape> = z.output<z.ZodObject<T>>;

/** What every service has as a process of its own. */
export type ProcessConfig = SettingsOf<ReturnType<typeof processSettingsWithoutDatabase>> &
  Partial<Pick<SettingsOf<ReturnType<typeof processSettings>>, 'MIGRATE_ON_START'>> & {
    readonly DATABASE_URL?: string;
    readonly REDIS_URL?: string;
  };
