import { auditRetentionSetting } from '@latchkey/audit/sweeper';
import { integerSetting, logLevelSetting, secretSetting, urlSetting } from '@latchkey/kit/config';
import { processSettings, readProcessConfig } from '@latchkey/kit/process-settings';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';
import { type IssuerSettings, readWithIssuers } from './oidc/issuer-settings.ts';

/** What the service needs in either shape. */
const serviceSettings = z.object({
  DATABASE_URL: urlSetting('postgres:', 'postgresql:'),
  DATABASE_POOL_MAX: integerSetting(1, 1_000).default(10),
  REDIS_URL: urlSetting('redis:', 'rediss:'),
  SECRET_KEY: secretSetting,
  SIGN_UP: z.enum(['open', 'closed'], 'must be open or closed').default('open'),
  ACTIVE_API_KEYS_LIMIT: integerSetting(0, 1_000_000).default(20),
  TWO_FACTOR_FAILURES_PER_15_MINUTES: integerSetting(1, 1_000).default(5),
  /** Wrong passwords shown with sessions of an account; those at sign-in are the gateway's to count. */
  PASSWORD_FAILURES_PER_15_MINUTES: integerSetting(1, 1_000).default(10),
  /** Passwords hashed or verified at once, each in 19 MiB and a thread of the pool that also resolves host names. */
  PASSWORD_HASHES_AT_ONCE: integerSetting(1, 64).default(2),
  /** Further ones that may wait; beyond them sign-in and sign-up answer 503. */
  PASSWORD_HASHES_WAITING: integerSetting(0, 10_000).default(200),
  /** Longest wait for one answer of an OpenID Connect issuer. */
  OIDC_TIMEOUT_MS: integerSetting(1, 5_000).default(4_000),
  AUDIT_RETENTION_DAYS: auditRetentionSetting,
  LOG_LEVEL: logLevelSetting.default('info'),
});

/** What it needs besides as a process of its own. */
const processConfig = serviceSettings.extend({
  ...processSettings({ port: 8083, grpcPort: 9083 }),
  APPS_URL: serviceUrlSetting,
});

/** The OpenID Connect issuers, each with settings of its own. */
interface Issuers {
  readonly oidcIssuers: readonly IssuerSettings[];
}

export type IdentityConfig = z.output<typeof serviceSettings> & Issuers;
export type IdentityProcessConfig = z.output<typeof processConfig> & Issuers;

/** Reads the service's settings. Throws ConfigError. */
export function readIdentityConfig(env: NodeJS.ProcessEnv): IdentityConfig {
  return readWithIssuers(serviceSettings, env);
}

/** Reads the settings of the service as a process. Throws ConfigError. */
export function readIdentityProcessConfig(env: NodeJS.ProcessEnv): IdentityProcessConfig {
  return readProcessConfig(processConfig, env, () => readWithIssuers(processConfig, env));
}
