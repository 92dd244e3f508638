import {
  integerSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  trustedProxiesSetting,
  urlSetting,
} from '@latchkey/kit/config';
import { processSettingsWithoutDatabase, readProcessConfig } from '@latchkey/kit/process-settings';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';

/** What the service needs in either shape. */
const serviceSettings = z.object({
  REALTIME_HOST: z.string().default('0.0.0.0'),
  REALTIME_PORT: portSetting.default(8081),
  REDIS_URL: urlSetting('redis:', 'rediss:'),
  TRUSTED_PROXIES: trustedProxiesSetting,
  /** Sockets of one process, those that are being opened included. Each takes about 25 KiB, and more while its client does not read. */
  SOCKETS_MAX: integerSetting(1, 1_000_000).default(20_000),
  SOCKETS_PER_APPLICATION: integerSetting(1, 1_000_000).default(10_000),
  SOCKETS_PER_IP: integerSetting(1, 1_000_000).default(10_000),
  /** Refused upgrades of one address until all of them are, for the rest of the minute. */
  REFUSED_UPGRADES_PER_MINUTE: integerSetting(1, 1_000_000).default(600),
  HEARTBEAT_SECONDS: integerSetting(1, 3_600).default(30),
  /** How often the node compares what its clients have heard with the event log. */
  EVENT_LOOK_SECONDS: integerSetting(1, 3_600).default(1),
  /** How long a stop spreads the closing of sockets over at most. */
  SOCKET_DRAIN_SECONDS: integerSetting(0, 600).default(5),
  LOG_LEVEL: logLevelSetting.default('info'),
});

/** What it needs besides as a process of its own. */
const processConfig = serviceSettings.extend({
  ...processSettingsWithoutDatabase({ port: 8085, grpcPort: 9085 }),
  APPS_URL: serviceUrlSetting,
});

export type RealtimeConfig = z.output<typeof serviceSettings>;
export type RealtimeProcessConfig = z.output<typeof processConfig>;

/** Reads the service's settings. Throws ConfigError. */
export function readRealtimeConfig(env: NodeJS.ProcessEnv): RealtimeConfig {
  return readConfig(serviceSettings, env);
}

/** Reads the settings of the service as a process. Throws ConfigError. */
export function readRealtimeProcessConfig(env: NodeJS.ProcessEnv): RealtimeProcessConfig {
  return readProcessConfig(processConfig, env);
}
