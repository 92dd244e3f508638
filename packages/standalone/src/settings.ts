import { readAppsConfig, readAppsProcessConfig } from '@latchkey/apps/config';
import { readFilesConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayConfig, readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityConfig, readIdentityProcessConfig } from '@latchkey/identity/config';
import {
  ConfigError,
  portSetting,
  readConfig,
  readTogether,
  secretSetting,
  serviceCredentialsSetting,
  urlSetting,
} from '@latchkey/kit/config';
import { readTelemetryConfig } from '@latchkey/kit/telemetry';
import { readRealtimeConfig, readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { z } from 'zod';

/** `standalone`: all services in this process. `deployed`: a process each. */
export type Shape = 'standalone' | 'deployed';

/** What the launcher itself needs; everything else goes on to the services. */
const launcherSettings = z.object({
  DATA_DIR: z.string().default('.data'),
  OBJECTS_DIR: z.string().optional(),
  HOST: z.string().default('0.0.0.0'),
  PORT: portSetting.default(8080),
  REALTIME_HOST: z.string().optional(),
  REALTIME_PORT: portSetting.default(8081),
  PUBLIC_URL: urlSetting('http:', 'https:').optional(),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  REDIS_URL: urlSetting('redis:', 'rediss:').optional(),
  SECRET_KEY: secretSetting.optional(),
  SERVICE_CREDENTIALS: serviceCredentialsSetting.optional(),
});

export type LauncherSettings = z.output<typeof launcherSettings> & {
  /** Whether anybody may create an account. */
  readonly signUpOpen: boolean;
  /** How long an ordered stop waits for uploads at most, in milliseconds. */
  readonly uploadDeadlineMs: number;
  /** How long it takes requests beforehand, in milliseconds. */
  readonly drainMs: number;
  /** How long it spreads the closing of live connections over at most, in milliseconds. */
  readonly socketDrainMs: number;
};

/** Stands in, while settings are checked, for what the launcher provides later. */
const PROVIDED = {
  DATABASE_URL: 'postgresql://provided',
  REDIS_URL: 'redis://provided',
  SECRET_KEY: 'provided'.repeat(8),
  OBJECTS_DIR: 'provided',
};

/** The same for services of their own: what the launcher gives each, and no others. */
const PROVIDED_TO_PROCESSES = {
  SERVICE_CREDENTIALS: 'provided'.repeat(8),
  GRPC_PORT: '0',
  APPS_URL: 'http://provided',
  IDENTITY_URL: 'http://provided',
  FILES_URL: 'http://provided',
};

const TLS_FILES = ['SERVICE_TLS_CERT_FILE', 'SERVICE_TLS_KEY_FILE', 'SERVICE_TLS_CA_FILE'];

/**
 * Reads the launcher's settings and checks those of all services too, before anything slow begins.
 *
 * @param shape whether services are processes of their own, which have settings of their own
 * @throws {ConfigError} naming every problem at once, one a line.
 */
export function readSettings(env: NodeJS.ProcessEnv, shape: Shape): LauncherSettings {
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
  attempt(() => readAppsConfig(complete));
  const files = attempt(() => readFilesConfig(complete));
  const realtime = attempt(() => readRealtimeConfig(complete));
  attempt(() => readTelemetryConfig(complete));
  if (shape === 'deployed') attempt(() => checkProcesses(complete));
  if (settings && settings.PORT !== 0 && settings.PORT === settings.REALTIME_PORT) {
    problems.add(`PORT (8080 unless set) and REALTIME_PORT (8081 unless set) must differ, and both are ${settings.PORT}`);
  }
  if (!settings || !identity || !gateway || !files || !realtime || problems.size > 0)
    throw new ConfigError([...problems].join('\n'));
  return {
    ...settings,
    signUpOpen: identity.SIGN_UP === 'open',
    uploadDeadlineMs: files.UPLOAD_DEADLINE_SECONDS * 1_000,
    drainMs: gateway.DRAIN_SECONDS * 1_000,
    socketDrainMs: realtime.SOCKET_DRAIN_SECONDS * 1_000,
  };
}

/** What services need as processes of their own. Throws ConfigError. */
function checkProcesses(given: NodeJS.ProcessEnv): void {
  const env: NodeJS.ProcessEnv = { ...given, ...PROVIDED_TO_PROCESSES };
  for (const name of TLS_FILES) delete env[name];
  readTogether(
    () => readAppsProcessConfig(env),
    () => readIdentityProcessConfig(env),
    () => readFilesProcessConfig(env),
    () => readGatewayProcessConfig(env),
    () => readRealtimeProcessConfig(env),
    () => refuseTls(given),
  );
}

function refuseTls(env: NodeJS.ProcessEnv): void {
  const why = 'must not be set with --deployed: there the services call one another in clear, on this machine only';
  const problems = TLS_FILES.filter((name) => env[name]).map((name) => `${name} ${why}`);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

/** What each shape has no use for: in one process no service is called over the network. */
const WITHOUT_EFFECT: Readonly<Record<Shape, readonly string[]>> = {
  standalone: ['MIGRATE_ON_START', ...TLS_FILES],
  deployed: [],
};

/** The names of settings that are set and that the shape does not heed. */
export function settingsWithoutEffect(env: NodeJS.ProcessEnv, shape: Shape): string[] {
  return WITHOUT_EFFECT[shape].filter((name) => env[name]);
}
