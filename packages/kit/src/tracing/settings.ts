import { accessSync, constants, statSync } from 'node:fs';
import { z } from 'zod';
import { integerSetting, readConfig, urlSetting } from '../config.ts';

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

const endpointSetting = urlSetting('http:', 'https:').optional();
const ratioSetting = z
  .string()
  .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be a number from 0 to 1')
  .transform(Number);

const timeoutSetting = integerSetting(1, 600_000).optional();
const compressionSetting = z.enum(['none', 'gzip'], 'must be none or gzip').optional();
const headersSetting = z
  .string()
  .regex(/^\s*[^=,\s]+\s*=[^,]*(,\s*[^=,\s]+\s*=[^,]*)*$/, 'must be name=value, separated by commas')
  .optional();
const fileSetting = z.string().refine(isReadable, "can't be read").optional();

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The part of OpenTelemetry's own settings that the library does not read, and those of the others that are checked here. */
const ownSettings = z.object({
  OTEL_SDK_DISABLED: z.enum(['true', 'false'], 'must be true or false').default('false'),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none'], 'must be otlp or none').default('otlp'),
  OTEL_EXPORTER_OTLP_ENDPOINT: endpointSetting,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpointSetting,
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal('http/protobuf', 'must be http/protobuf').default('http/protobuf'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: z.literal('http/protobuf', 'must be http/protobuf').default('http/protobuf'),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: ratioSetting.default(1),
  OTEL_BSP_SCHEDULE_DELAY: integerSetting(1, 600_000).default(5_000),
  OTEL_BSP_EXPORT_TIMEOUT: integerSetting(1, 600_000).default(30_000),
  OTEL_BSP_MAX_QUEUE_SIZE: integerSetting(1, 1_000_000).default(2_048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: integerSetting(1, 1_000_000).default(512),
});

/** What the exporter reads by itself, and would do without where it is wrong: without a word, or with one a minute. */
const exporterSettings = {
  OTEL_EXPORTER_OTLP_TIMEOUT: timeoutSetting,
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: timeoutSetting,
  OTEL_EXPORTER_OTLP_COMPRESSION: compressionSetting,
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compressionSetting,
  OTEL_EXPORTER_OTLP_HEADERS: headersSetting,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headersSetting,
  OTEL_EXPORTER_OTLP_CERTIFICATE: fileSetting,
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: fileSetting,
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: fileSetting,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: fileSetting,
  OTEL_EXPORTER_OTLP_CLIENT_KEY: fileSetting,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: fileSetting,
};

const settings = ownSettings
  .extend(exporterSettings)
  .refine(({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: batch, OTEL_BSP_MAX_QUEUE_SIZE: queue }) => batch <= queue, {
    path: ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'],
    message: 'must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048 unless set)',
  });

/** How traces are taken and where they are sent; the exporter reads the rest of the `OTEL_EXPORTER_OTLP_*` settings by itself. */
export type TracingConfig = z.output<typeof ownSettings>;

/** Reads the settings of traces; undefined where nobody wants them. Throws ConfigError. */
export function readTracingConfig(env: NodeJS.ProcessEnv): TracingConfig | undefined {
  const config = readConfig(settings, env);
  const isWanted = config.OTEL_EXPORTER_OTLP_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const isOff = config.OTEL_SDK_DISABLED === 'true' || config.OTEL_TRACES_EXPORTER === 'none';
  return isWanted === undefined || isOff ? undefined : config;
}
