import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { type MetricsConfig, readMetricsConfig } from '@latchkey/kit/metrics/settings';
import { readMigrationConfig } from '@latchkey/kit/migrate-process';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';

/** What a service made of its settings, as far as deployments have to agree with it. */
export interface ServiceConfig {
  readonly DATABASE_URL?: string;
  readonly PORT?: number;
  readonly REALTIME_PORT?: number;
  readonly UPLOAD_DEADLINE_SECONDS?: number;
  readonly DRAIN_SECONDS?: number;
}

/** How each service reads its settings as a process of its own, and each of the programs beside them. */
const READERS: Record<string, (env: NodeJS.ProcessEnv) => ServiceConfig> = {
  'avatar-worker': readAvatarWorkerConfig,
  migrate: readMigrationConfig,
  apps: readAppsProcessConfig,
  files: readFilesProcessConfig,
  gateway: readGatewayProcessConfig,
  identity: readIdentityProcessConfig,
  realtime: readRealtimeProcessConfig,
};

/** The services themselves. */
export const SERVICES = ['apps', 'files', 'gateway', 'identity', 'realtime'];

/** The service that a container's arguments start: `services/<name>/src/main.ts [command]`. */
export function serviceOf(command: readonly string[] | undefined): string | undefined {
  return /^services\/([a-z]+)\/src\/main\.ts$/.exec(command?.[0] ?? '')?.[1];
}

/**
 * Reads settings as a service itself does, or as `migrate` or `avatar-worker`. Throws ConfigError, which names what is missing or wrong.
 *
 * @returns its settings, those of its metrics, and the names of all that it looked for
 */
export function readAsService(program: string, env: Readonly<Record<string, string>>) {
  const read = READERS[program];
  if (!read) throw new Error(`there is no program ${program}`);
  const names = new Set<string>();
  const watched = new Proxy(env as NodeJS.ProcessEnv, {
    get: (target, name) => {
      names.add(String(name));
      return target[String(name)];
    },
  });
  const config = read(watched);
  // Nobody looks at what ends by itself.
  const metrics: MetricsConfig | undefined = program === 'migrate' ? undefined : readMetricsConfig(watched);
  return { config, metrics, names };
}
