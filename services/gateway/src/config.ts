import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { defaultHost } from '@latchkey/kit/config/listen-host';
import { connectionsPerIpSetting, readProcessConfig } from '@latchkey/kit/config/process-settings';
import {
  integerSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  serviceCredentialsSetting,
  trustedProxiesSetting,
  urlSetting,
} from '@latchkey/kit/config/settings';
import { redisSettings } from '@latchkey/kit/redis/redis-url';
import { serviceTlsSettings, serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';
import { rateLimitSettings } from './rate-limit/rate-limits.ts';

const serviceSettings = z.object({
  HOST: z.string().optional(),
  PORT: portSetting.default(8080),
  ...redisSettings,
  PUBLIC_URL: urlSetting('http:', 'https:').optional(),
  /** Target of redirects after OpenID Connect. Unset means that browsers get the envelope. */
  OIDC_RETURN_URL: urlSetting('http:', 'https:').optional(),
  DASHBOARD: z.enum(['on', 'off'], 'must be on or off').default('on'),
  /** URL of live events for browsers. Unset, it follows from the address of the dashboard. */
  PUBLIC_REALTIME_URL: urlSetting('ws:', 'wss:').optional(),
  /** Port of live events at the host of the dashboard, unless a proxy serves both on one port. */
  REALTIME_PORT: portSetting.default(8081),
  TRUSTED_PROXIES: trustedProxiesSetting,
  /** Trusted proxies have no limit. */
  CONNECTIONS_PER_IP: connectionsPerIpSetting,
  /** Time in which an ordered stop accepts connections, so that balancers and clients can leave. */
  DRAIN_SECONDS: integerSetting(0, 600).default(0),
  ...rateLimitSettings,
  /**
   * Longest wait of a request for others that share its command to Redis, calls and statements. It
   * saves CPU where several gateways divide the requests (ADR 17).
   */
  REQUEST_BATCH_WAIT_MS: integerSetting(0, 50).default(0),
  UPLOAD_DEADLINE_SECONDS: integerSetting(1, 86_400).default(DEFAULT_LIMITS.UPLOAD_DEADLINE_SECONDS),
  LOG_LEVEL: logLevelSetting.default('info'),
});

const processSettings = serviceSettings.extend({
  IDENTITY_URL: serviceUrlSetting,
  APPS_URL: serviceUrlSetting,
  FILES_URL: serviceUrlSetting,
  SERVICE_CREDENTIALS: serviceCredentialsSetting,
  ...serviceTlsSettings,
});

export type GatewayConfig = ReturnType<typeof readGatewayConfig>;
/** Time for the checks, the commit and the response of an upload, in milliseconds. */
const UPLOAD_SLACK_MS = 15_000;

/** Longest time of an upload from its first byte to its response, in milliseconds. */
export function uploadMsMax({ UPLOAD_DEADLINE_SECONDS }: Pick<GatewayConfig, 'UPLOAD_DEADLINE_SECONDS'>): number {
  return UPLOAD_DEADLINE_SECONDS * 1_000 + UPLOAD_SLACK_MS;
}

export function readGatewayConfig(env: NodeJS.ProcessEnv) {
  return withHost(readConfig(serviceSettings, env));
}

export function readGatewayProcessConfig(env: NodeJS.ProcessEnv) {
  return withHost(readProcessConfig(processSettings, env));
}

function withHost<C extends z.output<typeof serviceSettings>>(config: C) {
  return { ...config, HOST: config.HOST ?? defaultHost(config.PUBLIC_URL) };
}
