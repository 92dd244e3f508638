import { auditRetentionSetting } from '@latchkey/audit/retention';
import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { dataServiceSettings, processSettings, readProcessConfig } from '@latchkey/kit/config/process-settings';
import { ConfigError, integerSetting, readConfig, readTogether, urlSetting } from '@latchkey/kit/config/settings';
import { serviceUrlSetting } from '@latchkey/kit/tls/tls-settings';
import { z } from 'zod';

const limit = (fallback: number, max = 1_000_000_000) => integerSetting(1, max).default(fallback);

const serviceSettings = z.object({
  ...dataServiceSettings,
  PUBLIC_URL: urlSetting('http:', 'https:').default('http://localhost:8080'),
  STORAGE_ALLOWANCE_MIB: limit(DEFAULT_LIMITS.STORAGE_ALLOWANCE_MIB),
  FILE_COUNT_LIMIT: limit(DEFAULT_LIMITS.FILE_COUNT_LIMIT),
  FILE_SIZE_LIMIT_MIB: limit(DEFAULT_LIMITS.FILE_SIZE_LIMIT_MIB, 1_000_000),
  UPLOAD_DEADLINE_SECONDS: limit(DEFAULT_LIMITS.UPLOAD_DEADLINE_SECONDS, 86_400),
  /** Place of avatar decoding: this process or avatar workers. */
  AVATAR_WORKER: z.enum(['inside', 'apart'], 'must be inside or apart').default('inside'),
  /** Each takes a process and up to 400 MiB, 120 to 180 with photographs. */
  AVATAR_DECODES_AT_ONCE: limit(2, 64),
  OBJECT_STORE: z.enum(['disk', 's3'], 'must be disk or s3').default('disk'),
  OBJECTS_DIR: z.string().optional(),
  S3_ENDPOINT: urlSetting('http:', 'https:').optional(),
  /** URL of the same server for downloads by clients. */
  S3_PUBLIC_ENDPOINT: urlSetting('http:', 'https:').optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z.string().optional(),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
  S3_FORCE_PATH_STYLE: z.enum(['true', 'false'], 'must be true or false').default('false'),
  AUDIT_RETENTION_DAYS: auditRetentionSetting,
});

const processConfig = serviceSettings.extend({
  ...processSettings({ port: 8084, grpcPort: 9084 }),
  APPS_URL: serviceUrlSetting,
  IDENTITY_URL: serviceUrlSetting,
});

/** The avatar worker signs nothing and does not call apps. */
const workerConfig = processConfig.omit({ SECRET_KEY: true, APPS_URL: true });

export type FilesConfig = z.output<typeof serviceSettings>;
export type AvatarWorkerConfig = Omit<FilesConfig, 'SECRET_KEY'>;

export function readFilesConfig(env: NodeJS.ProcessEnv): FilesConfig {
  return readWithObjectStore(serviceSettings, env);
}

export function readFilesProcessConfig(env: NodeJS.ProcessEnv): z.output<typeof processConfig> {
  return readProcessConfig(processConfig, env, () => readWithObjectStore(processConfig, env));
}

export function readAvatarWorkerConfig(env: NodeJS.ProcessEnv): z.output<typeof workerConfig> {
  return readProcessConfig(workerConfig, env, () => readWithObjectStore(workerConfig, env));
}

function readWithObjectStore<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv): z.output<T> {
  const [config] = readTogether(
    () => readConfig(schema, env),
    () => checkObjectStore(env),
  );
  return config;
}

function checkObjectStore(env: NodeJS.ProcessEnv): void {
  const store = env.OBJECT_STORE || 'disk';
  const problems: string[] = [];
  if (store === 'disk' && !env.OBJECTS_DIR) problems.push('OBJECTS_DIR is required for OBJECT_STORE=disk');
  if (store === 's3' && !env.S3_BUCKET) problems.push('S3_BUCKET is required for OBJECT_STORE=s3');
  if (store === 's3' && !env.S3_ACCESS_KEY_ID !== !env.S3_SECRET_ACCESS_KEY) {
    problems.push('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set both or not at all');
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}
