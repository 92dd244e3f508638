import { processSettingsWithoutDatabase, readProcessConfig } from '@latchkey/kit/config/process-settings';
import {
  integerSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  trustedProxiesSetting,
  urlSetting,
} from '@latchkey/kit/config/settings';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';

const serviceSettings = z.object({
  REALTIME_HOST: z.string().default('0.0.0.0'),
  REALTIME_PORT: portSetting.default(8081),
  REDIS_URL: urlSetting('redis:', 'rediss:'),
  TRUSTED_PROXIES: trustedProxiesSetting,
  /** Sockets of one process, those that are being opened included. Each takes about 25 KiB. */
  SOCKETS_MAX: integerSetting(1, 1_000_000).default(20_000),
  SOCKETS_PER_IP: integerSetting(1, 1_000_000).default(10_000),
  LOG_LEVEL: logLevelSetting.default('info'),
});

const processConfig = serviceSettings.extend({
  ...processSettingsWithoutDatabase({ port: 8085, grpcPort: 9085 }),
  APPS_URL: serviceUrlSetting,
});

export type RealtimeConfig = z.output<typeof serviceSettings>;

export function readRealtimeConfig(env: NodeJS.ProcessEnv): RealtimeConfig {
  return readConfig(serviceSettings, env);
}

export function readRealtimeProcessConfig(env: NodeJS.ProcessEnv): z.output<typeof processConfig> {
  return readProcessConfig(processConfig, env);
}
