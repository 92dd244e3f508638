import { auditRetentionSetting } from '@latchkey/audit/retention';
import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { dataServiceSettings, processSettings, readProcessConfig } from '@latchkey/kit/config/process-settings';
import { integerSetting, readConfig } from '@latchkey/kit/config/settings';
import { z } from 'zod';

/** Settings of the service in either shape. */
const serviceSettings = z.object({
  ...dataServiceSettings,
  // Bounded, since the application's row has the times of all of them.
  RUNTIME_KEY_ROTATIONS_PER_HOUR: integerSetting(0, 10_000).default(DEFAULT_LIMITS.RUNTIME_KEY_ROTATIONS_PER_HOUR),
  APPLICATIONS_LIMIT: integerSetting(0, 1_000_000).default(DEFAULT_LIMITS.APPLICATIONS_LIMIT),
  AUDIT_RETENTION_DAYS: auditRetentionSetting,
});

const processConfig = serviceSettings.extend(processSettings({ port: 8082, grpcPort: 9082 }));

export type AppsConfig = z.output<typeof serviceSettings>;

export function readAppsConfig(env: NodeJS.ProcessEnv): AppsConfig {
  return readConfig(serviceSettings, env);
}

export function readAppsProcessConfig(env: NodeJS.ProcessEnv): z.output<typeof processConfig> {
  return readProcessConfig(processConfig, env);
}
