import { auditRetentionSetting } from '@latchkey/audit/sweeper';
import { processSettings, readProcessConfig } from '@latchkey/kit/config/process-settings';
import { integerSetting, logLevelSetting, readConfig, secretSetting } from '@latchkey/kit/config/settings';
import { databaseUrlSetting } from '@latchkey/kit/database/database-url';
import { redisUrlSetting } from '@latchkey/kit/redis/redis-url';
import { z } from 'zod';

/** Settings of the service in either shape. */
const serviceSettings = z.object({
  DATABASE_URL: databaseUrlSetting,
  DATABASE_POOL_MAX: integerSetting(1, 1_000).default(10),
  REDIS_URL: redisUrlSetting,
  SECRET_KEY: secretSetting,
  // Bounded, since the application's row has the times of all of them.
  RUNTIME_KEY_ROTATIONS_PER_HOUR: integerSetting(0, 10_000).default(2),
  APPLICATIONS_LIMIT: integerSetting(0, 1_000_000).default(200),
  AUDIT_RETENTION_DAYS: auditRetentionSetting,
  LOG_LEVEL: logLevelSetting.default('info'),
});

const processConfig = serviceSettings.extend(processSettings({ port: 8082, grpcPort: 9082 }));

export type AppsConfig = z.output<typeof serviceSettings>;

export function readAppsConfig(env: NodeJS.ProcessEnv): AppsConfig {
  return readConfig(serviceSettings, env);
}

export function readAppsProcessConfig(env: NodeJS.ProcessEnv): z.output<typeof processConfig> {
  return readProcessConfig(processConfig, env);
}
