import {
  integerSetting,
  listSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  secretSetting,
  urlSetting,
} from '@latchkey/kit/config';
import { z } from 'zod';

/** What the service needs in either shape. */
const serviceSettings = z.object({
  DATABASE_URL: urlSetting('postgres:', 'postgresql:'),
  DATABASE_POOL_MAX: integerSetting(1, 1_000).default(10),
  REDIS_URL: urlSetting('redis:', 'rediss:'),
  SECRET_KEY: secretSetting,
  SIGN_UP: z.enum(['open', 'closed'], 'must be open or closed').default('open'),
  ACTIVE_API_KEYS_LIMIT: integerSetting(0, 1_000_000).default(20),
  /** Passwords hashed or verified at once, each in 19 MiB and a thread of the pool that also resolves host names. */
  PASSWORD_HASHES_AT_ONCE: integerSetting(1, 64).default(2),
  /** Further ones that may wait; beyond them sign-in and sign-up answer 503. */
  PASSWORD_HASHES_WAITING: integerSetting(0, 10_000).default(200),
  LOG_LEVEL: logLevelSetting.default('info'),
});

/** What it needs besides as a process of its own. */
const processSettings = serviceSettings.extend({
  HOST: z.string().default('0.0.0.0'),
  PORT: portSetting.default(8083),
  GRPC_PORT: portSetting.default(9083),
  SERVICE_CREDENTIALS: listSetting.pipe(z.tuple([secretSetting], secretSetting).check(z.maxLength(2, 'must hold one or two'))),
  APPS_URL: urlSetting('http:'),
  MIGRATE_ON_START: z.enum(['true', 'false'], 'must be true or false').default('true'),
});

export type IdentityConfig = z.output<typeof serviceSettings>;
export type IdentityProcessConfig = z.output<typeof processSettings>;

/** Reads the service's settings. Throws ConfigError. */
export function readIdentityConfig(env: NodeJS.ProcessEnv): IdentityConfig {
  return readConfig(serviceSettings, env);
}

/** Reads the settings of the service as a process. Throws ConfigError. */
export function readIdentityProcessConfig(env: NodeJS.ProcessEnv): IdentityProcessConfig {
  return readConfig(processSettings, env);
}
