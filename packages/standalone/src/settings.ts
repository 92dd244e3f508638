import { readAppsConfig } from '@latchkey/apps/config';
import { readFilesConfig } from '@latchkey/files/config';
import { readGatewayConfig } from '@latchkey/gateway/config';
import { readIdentityConfig } from '@latchkey/identity/config';
import { ConfigError, portSetting, readConfig, secretSetting, serviceCredentialsSetting, urlSetting } from '@latchkey/kit/config';
import { readRealtimeConfig } from '@latchkey/realtime/config';
import { z } from 'zod';

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

/**
 * Reads the launcher's settings and checks those of all services too, before anything slow begins.
 *
 * @throws {ConfigError} naming every problem at once, one a line.
 */
export function readSettings(env: NodeJS.ProcessEnv): LauncherSettings {
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
  attempt(() => readGatewayConfig(complete));
  attempt(() => readAppsConfig(complete));
  const files = attempt(() => readFilesConfig(complete));
  const realtime = attempt(() => readRealtimeConfig(complete));
  if (settings && settings.PORT !== 0 && settings.PORT === settings.REALTIME_PORT) {
    problems.add(`PORT (8080 unless set) and REALTIME_PORT (8081 unless set) must differ, and both are ${settings.PORT}`);
  }
  if (!settings || !identity || !files || !realtime || problems.size > 0) throw new ConfigError([...problems].join('\n'));
  return {
    ...settings,
    signUpOpen: identity.SIGN_UP === 'open',
    uploadDeadlineMs: files.UPLOAD_DEADLINE_SECONDS * 1_000,
    socketDrainMs: realtime.SOCKET_DRAIN_SECONDS * 1_000,
  };
}
