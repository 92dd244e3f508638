import { z } from 'zod';
import { databaseUrlSetting } from '../database/database-url.ts';
import { type RedisConfig, redisSettings } from '../redis/redis-url.ts';
import { checkServiceTls, serviceTlsSettings } from '../tls/tls-settings.ts';
import {
  integerSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  readTogether,
  secretSetting,
  serviceCredentialsSetting,
} from './settings.ts';

/** Settings of every service with a database, in either shape. */
export const dataServiceSettings = {
  DATABASE_URL: databaseUrlSetting,
  DATABASE_POOL_MAX: integerSetting(1, 1_000).default(10),
  ...redisSettings,
  SECRET_KEY: secretSetting,
  LOG_LEVEL: logLevelSetting.default('info'),
};

/** Connections of one address, an IPv6 /64. */
export const connectionsPerIpSetting = integerSetting(1, 1_000_000).default(1_000);

export function processSettingsWithoutDatabase(ports: { readonly port: number; readonly grpcPort: number }) {
  return {
    HOST: z.string().default('127.0.0.1'),
    PORT: portSetting.default(ports.port),
    GRPC_PORT: portSetting.default(ports.grpcPort),
    /** On each of the ports. */
    CONNECTIONS_PER_IP: connectionsPerIpSetting,
    SERVICE_CREDENTIALS: serviceCredentialsSetting,
    ...serviceTlsSettings,
  };
}

export function processSettings(...[ports]: Parameters<typeof processSettingsWithoutDatabase>) {
  const MIGRATE_ON_START = z.enum(['true', 'false'], 'must be true or false').default('true');
  return { ...processSettingsWithoutDatabase(ports), MIGRATE_ON_START };
}

/**
 * Reads the settings of a process with other services: with TLS on all sides, or without. `read`
 * reads those of the schema, where that takes more than {@link readConfig}. Throws ConfigError.
 */
export function readProcessConfig<T extends z.ZodObject, C = z.output<T>>(
  schema: T,
  env: NodeJS.ProcessEnv,
  read: () => C = () => readConfig(schema, env) as C,
): C {
  const urlNames = ['IDENTITY_URL', 'APPS_URL', 'FILES_URL'].filter((name) => Object.hasOwn(schema.shape, name));
  const [config] = readTogether(read, () => checkServiceTls(env, urlNames));
  return config;
}

type SettingsOf<T extends z.core.$ZodLooseShape> = z.output<z.ZodObject<T>>;

export type SharedConfig = SettingsOf<typeof serviceTlsSettings> & Partial<RedisConfig> & { readonly DATABASE_URL?: string };

export type ProcessConfig = SharedConfig &
  SettingsOf<ReturnType<typeof processSettingsWithoutDatabase>> & { readonly MIGRATE_ON_START?: 'true' | 'false' };
