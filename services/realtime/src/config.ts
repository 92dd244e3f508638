import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { defaultHost } from '@latchkey/kit/config/listen-host';
import { processSettingsWithoutDatabase, readProcessConfig } from '@latchkey/kit/config/process-settings';
import {
  integerSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  trustedProxiesSetting,
  urlSetting,
} from '@latchkey/kit/config/settings';
import { redisSettings } from '@latchkey/kit/redis/redis-url';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';

const serviceSettings = z.object({
  REALTIME_HOST: z.string().optional(),
  PUBLIC_REALTIME_URL: urlSetting('ws:', 'wss:').optional(),
  REALTIME_PORT: portSetting.default(8081),
  ...redisSettings,
  TRUSTED_PROXIES: trustedProxiesSetting,
  /** Sockets of one process, those that are being opened included. Each takes 11 to 15 KiB. */
  SOCKETS_MAX: integerSetting(1, 1_000_000).default(DEFAULT_LIMITS.SOCKETS_MAX),
  SOCKETS_PER_IP: integerSetting(1, 1_000_000).default(DEFAULT_LIMITS.SOCKETS_PER_IP),
  SOCKETS_PER_APPLICATION: integerSetting(1, 1_000_000).default(DEFAULT_LIMITS.SOCKETS_PER_APPLICATION),
  LOG_LEVEL: logLevelSetting.default('info'),
});

const processConfig = serviceSettings.extend({
  ...processSettingsWithoutDatabase({ port: 8085, grpcPort: 9085 }),
  APPS_URL: serviceUrlSetting,
});

export type RealtimeConfig = ReturnType<typeof readRealtimeConfig>;

export function readRealtimeConfig(env: NodeJS.ProcessEnv) {
  return withHost(readConfig(serviceSettings, env));
}

export function readRealtimeProcessConfig(env: NodeJS.ProcessEnv) {
  return withHost(readProcessConfig(processConfig, env));
}

function withHost<C extends z.output<typeof serviceSettings>>(config: C) {
  return { ...config, REALTIME_HOST: config.REALTIME_HOST ?? defaultHost(config.PUBLIC_REALTIME_URL) };
}
