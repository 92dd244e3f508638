import { auditRetentionSetting } from '@latchkey/audit/retention';
import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { dataServiceSettings, processSettings, readProcessConfig } from '@latchkey/kit/config/process-settings';
import { ConfigError, integerSetting, listSetting, readTogether, urlSetting } from '@latchkey/kit/config/settings';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';
import { readWithIssuers } from './oidc/issuer-settings.ts';

const MAIL_ADDRESS = /^(?:[^<>\r\n]*<[^<>\s@]+@[^<>\s@]+>|[^<>\s@]+@[^<>\s@]+)$/;

const isHost = (text: string) => URL.parse(`https://${text}`)?.href === `https://${text}/`;

const serviceSettings = z.object({
  ...dataServiceSettings,
  SIGN_UP: z.enum(['open', 'closed'], 'must be open or closed').default('open'),
  ACTIVE_API_KEYS_LIMIT: integerSetting(0, 1_000_000).default(DEFAULT_LIMITS.ACTIVE_API_KEYS_LIMIT),
  TWO_FACTOR_FAILURES_PER_15_MINUTES: integerSetting(1, 1_000).default(DEFAULT_LIMITS.TWO_FACTOR_FAILURES_PER_15_MINUTES),
  /** Base URL of the links in mails. */
  PUBLIC_URL: urlSetting('http:', 'https:').default('http://localhost:8080'),
  /** Unset means that no mail is sent. */
  SMTP_URL: urlSetting('smtp:', 'smtps:').optional(),
  MAIL_FROM: z.string().regex(MAIL_ADDRESS, 'must be an address, or a name and an <address>').optional(),
  /** Hosts of trusted issuers that may be on internal networks. */
  TRUSTED_ISSUER_INTERNAL_HOSTS: listSetting
    .refine((hosts) => hosts.every(isHost), 'must list lower-case hosts, with a port other than 443 after a colon')
    .default([]),
  AUDIT_RETENTION_DAYS: auditRetentionSetting,
});

const processConfig = serviceSettings.extend({
  ...processSettings({ port: 8083, grpcPort: 9083 }),
  APPS_URL: serviceUrlSetting,
});

export type IdentityConfig = ReturnType<typeof readIdentityConfig>;

export function readIdentityConfig(env: NodeJS.ProcessEnv) {
  return readAll(serviceSettings, env);
}

export function readIdentityProcessConfig(env: NodeJS.ProcessEnv) {
  return readProcessConfig(processConfig, env, () => readAll(processConfig, env));
}

function readAll<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv) {
  const [config] = readTogether(
    () => readWithIssuers(schema, env),
    () => {
      if (env.SMTP_URL && !env.MAIL_FROM) throw new ConfigError('MAIL_FROM is required with SMTP_URL');
    },
  );
  return config;
}
