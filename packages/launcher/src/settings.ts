import { readAppsConfig, readAppsProcessConfig } from '@latchkey/apps/config';
import { readFilesConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayConfig, readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityConfig, readIdentityProcessConfig } from '@latchkey/identity/config';
import { defaultHost } from '@latchkey/kit/config/listen-host';
import {
  ConfigError,
  portSetting,
  readConfig,
  secretSetting,
  serviceCredentialsSetting,
  urlSetting,
} from '@latchkey/kit/config/settings';
import { databaseUrlSetting } from '@latchkey/kit/database/database-url';
import { redisSettings } from '@latchkey/kit/redis/redis-url';
import { readTelemetryConfig } from '@latchkey/kit/telemetry/telemetry';
import { readRealtimeConfig, readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { z } from 'zod';

/** `standalone`: all services in this process. `deployed`: each as a process. */
export type Shape = 'standalone' | 'deployed';

const launcherSettings = z.object({
  DATA_DIR: z.string().default('.data'),
  OBJECTS_DIR: z.string().optional(),
  HOST: z.string().optional(),
  PORT: portSetting.default(8080),
  REALTIME_PORT: portSetting.default(8081),
  PUBLIC_URL: urlSetting('http:', 'https:').optional(),
  DATABASE_URL: databaseUrlSetting.optional(),
  ...redisSettings,
  REDIS_URL: redisSettings.REDIS_URL.optional(),
  SECRET_KEY: secretSetting.optional(),
  SERVICE_CREDENTIALS: serviceCredentialsSetting.optional(),
});

export type LauncherSettings = ReturnType<typeof readSettings>;

/** Placeholders for what the launcher provides later. */
const PROVIDED = {
  DATABASE_URL: 'postgresql://provided',
  REDIS_URL: 'redis://provided',
  SECRET_KEY: 'provided'.repeat(8),
  OBJECTS_DIR: 'provided',
};

const PROVIDED_TO_PROCESSES = {
  SERVICE_CREDENTIALS: 'provided'.repeat(8),
  GRPC_PORT: '0',
  APPS_URL: 'http://provided',
  IDENTITY_URL: 'http://provided',
  FILES_URL: 'http://provided',
};

const TLS_FILES = ['SERVICE_TLS_CERT_FILE', 'SERVICE_TLS_KEY_FILE', 'SERVICE_TLS_CA_FILE'];
const PROCESS_READERS = [
  readAppsProcessConfig,
  readIdentityProcessConfig,
  readFilesProcessConfig,
  readGatewayProcessConfig,
  readRealtimeProcessConfig,
];

/**
 * Reads the launcher's settings and checks those of all services, before anything slow begins.
 *
 * @throws {ConfigError} naming every problem, one a line
 */
export function readSettings(env: NodeJS.ProcessEnv, shape: Shape) {
  const problems = new Set<string>();
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (err) {
      if (!(err instanceof ConfigError)) throw err;
      for (const problem of err.message.split('\n')) problems.add(problem);
      return undefined;
    }
  };
  const settings = attempt(() => readConfig(launcherSettings, env));
  const complete = { ...env };
  for (const [name, value] of Object.entries(PROVIDED)) complete[name] ||= value;
  const identity = attempt(() => readIdentityConfig(complete));
  const gateway = attempt(() => readGatewayConfig(complete));
  const files = attempt(() => readFilesConfig(complete));
  for (const read of [readAppsConfig, readRealtimeConfig, readTelemetryConfig]) attempt<unknown>(() => read(complete));
  if (shape === 'deployed') {
    const given: NodeJS.ProcessEnv = { ...complete, ...PROVIDED_TO_PROCESSES };
    for (const name of TLS_FILES) delete given[name];
    for (const read of PROCESS_READERS) attempt<unknown>(() => read(given));
    const why = 'must not be set with --deployed: there the services call one another in clear, on this machine only';
    for (const name of TLS_FILES.filter((name) => env[name])) problems.add(`${name} ${why}`);
  }
  if (settings && settings.PORT !== 0 && settings.PORT === settings.REALTIME_PORT) {
    problems.add(`PORT (8080 unless set) and REALTIME_PORT (8081 unless set) must differ, and both are ${settings.PORT}`);
  }
  const metricsPort = Number(env.METRICS_PORT);
  if (settings && metricsPort > 0 && [settings.PORT, settings.REALTIME_PORT].includes(metricsPort)) {
    problems.add('METRICS_PORT must differ from PORT and REALTIME_PORT');
  }
  if (!settings || !identity || !gateway || !files || problems.size > 0) throw new ConfigError([...problems].join('\n'));
  return {
    ...settings,
    HOST: settings.HOST ?? defaultHost(settings.PUBLIC_URL),
    signUpOpen: identity.SIGN_UP === 'open',
    hasDashboard: gateway.DASHBOARD === 'on',
    /** Longest wait of an ordered stop for uploads. */
    uploadDeadlineMs: files.UPLOAD_DEADLINE_SECONDS * 1_000,
    /** Time before that in which it still accepts requests. */
    drainMs: gateway.DRAIN_SECONDS * 1_000,
  };
}

/** Settings without effect: in one process, no service is called over the network. */
export function settingsWithoutEffect(env: NodeJS.ProcessEnv, shape: Shape): string[] {
  return shape === 'standalone' ? ['MIGRATE_ON_START', ...TLS_FILES].filter((name) => env[name]) : [];
}
