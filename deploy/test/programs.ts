import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { ConfigError, readTogether } from '@latchkey/kit/config/settings';
import { readMigrationConfig } from '@latchkey/kit/process/migrate-command';
import { readTelemetryConfig } from '@latchkey/kit/telemetry/telemetry';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';

export type Env = Readonly<Record<string, string>>;

/** Parsed settings of a service on which deployments have to agree. */
export interface ServiceConfig {
  readonly DATABASE_URL?: string;
  readonly HOST?: string;
  readonly REALTIME_HOST?: string;
  readonly PORT?: number;
  readonly REALTIME_PORT?: number;
  readonly UPLOAD_DEADLINE_SECONDS?: number;
  readonly DRAIN_SECONDS?: number;
}

export type Reader = (env: NodeJS.ProcessEnv) => ServiceConfig;

/** Readers of each service's settings, which run as a process. */
const READERS: Readonly<Record<string, Reader>> = {
  apps: readAppsProcessConfig,
  files: readFilesProcessConfig,
  gateway: readGatewayProcessConfig,
  identity: readIdentityProcessConfig,
  realtime: readRealtimeProcessConfig,
};

export const SERVICES = Object.keys(READERS);

/** The service that a command starts: `services/<name>/src/main.ts`. */
export function serviceOf(command: readonly string[]): string | undefined {
  const names = command.map((word) => /^services\/([a-z]+)\/src\/main\.ts$/.exec(word)?.[1]);
  return names.find((name) => name !== undefined && name in READERS);
}

/** The reader of the settings of a command, or undefined where it starts no program of ours. */
export function readerOf(command: readonly string[]): Reader | undefined {
  const service = serviceOf(command);
  if (service === undefined) return undefined;
  if (command.at(-1) === 'migrate') return readMigrationConfig;
  const read = command.at(-1) === 'avatar-worker' ? readAvatarWorkerConfig : (READERS[service] as Reader);
  return (env) =>
    readTogether(
      () => read(env),
      () => readTelemetryConfig(env),
    )[0];
}

/** The names of the settings that a reader reads, and what is wrong with them. */
export function watchReader(read: Reader, env: Env): { readonly names: ReadonlySet<string>; readonly problems: string[] } {
  const names = new Set<string>();
  const watched = new Proxy(env as NodeJS.ProcessEnv, {
    get(target, name) {
      names.add(String(name));
      return target[String(name)];
    },
  });
  try {
    read(watched);
    return { names, problems: [] };
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    return { names, problems: err.message.split('\n') };
  }
}
