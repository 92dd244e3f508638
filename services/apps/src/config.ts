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
  SECRET_KEY: secretSetting,
  // Bounded, since the times of all of them stand in the application's row.
  RUNTIME_KEY_ROTATIONS_PER_HOUR: integerSetting(0, 10_000).default(2),
  LOG_LEVEL: logLevelSetting.default('info'),
});

/** What it needs besides as a process of its own. */
const processSettings = serviceSettings.extend({
  HOST: z.string().default('0.0.0.0'),
  PORT: portSetting.default(8082),
  GRPC_PORT: portSetting.default(9082),
  SERVICE_CREDENTIALS: listSetting.pipe(z.array(secretSetting).min(1).max(2, 'must hold one or two credentials')),
  MIGRATE_ON_START: z.enum(['true', 'false'], 'must be true or false').default('true'),
});

export type AppsConfig = z.output<typeof serviceSettings>;
export type AppsProcessConfig = z.output<typeof processSettings>;

/** Reads the service's settings. Throws ConfigError. */
export function readAppsConfig(env: NodeJS.ProcessEnv): AppsConfig {
  return readConfig(serviceSettings, env);
}

/** Reads the settings of the service as a process. Throws ConfigError. */
export function readAppsProcessConfig(env: NodeJS.ProcessEnv): AppsProcessConfig {
  return readConfig(processSettings, env);
}
