import { accessSync, constants, statSync } from 'node:fs';
import { z } from 'zod';
import { headerSecretSetting, integerSetting, listSetting, portSetting, readConfig, urlSetting } from '../config/settings.ts';

const metricsSettings = z
  .object({
    HOST: z.string().default('127.0.0.1'),
    METRICS_PORT: portSetting.optional(),
    METRICS_TOKEN: headerSecretSetting.optional(),
    /** Read only to compare them with the token. */
    SERVICE_CREDENTIALS: listSetting.default([]),
  })
  .refine(({ METRICS_PORT, METRICS_TOKEN }) => METRICS_PORT === undefined || METRICS_TOKEN !== undefined, {
    path: ['METRICS_TOKEN'],
    message: 'is required with METRICS_PORT',
    // Also where other settings are wrong, so that all problems are reported together.
    when: () => true,
  })
  .refine(({ METRICS_TOKEN, SERVICE_CREDENTIALS }) => !SERVICE_CREDENTIALS.some((credential) => credential === METRICS_TOKEN), {
    path: ['METRICS_TOKEN'],
    message: 'must be none of SERVICE_CREDENTIALS',
    when: () => true,
  });

export type MetricsConfig = NonNullable<ReturnType<typeof readMetricsConfig>>;

/** Reads the settings of metrics; undefined unless METRICS_PORT is set. Throws ConfigError. */
export function readMetricsConfig(env: NodeJS.ProcessEnv) {
  const { HOST: host, METRICS_PORT: port, METRICS_TOKEN: token } = readConfig(metricsSettings, env);
  return port === undefined || token === undefined ? undefined : { host, port, token };
}

const ROOT_SAMPLERS = ['always_on', 'always_off', 'traceidratio'] as const;
const SAMPLERS = [...ROOT_SAMPLERS, ...ROOT_SAMPLERS.map((name) => `parentbased_${name}` as const)] as const;

const countSetting = (defaultCount: number, max = 1_000_000) => integerSetting(1, max).default(defaultCount);
const fileSetting = z.string().refine(isReadable, "can't be read");

/** Settings that the OTLP exporter reads itself, and ignores where they are invalid. */
const EXPORTER_SETTINGS = {
  ENDPOINT: urlSetting('http:', 'https:'),
  PROTOCOL: z.literal('http/protobuf', 'must be http/protobuf'),
  TIMEOUT: integerSetting(1, 600_000),
  COMPRESSION: z.enum(['none', 'gzip'], 'must be none or gzip'),
  HEADERS: z.string().regex(/^\s*[^=,\s]+\s*=[^,]*(,\s*[^=,\s]+\s*=[^,]*)*$/, 'must be name=value, separated by commas'),
  CERTIFICATE: fileSetting,
  CLIENT_CERTIFICATE: fileSetting,
  CLIENT_KEY: fileSetting,
};

const exporterSettings: z.core.$ZodLooseShape = Object.fromEntries(
  Object.entries(EXPORTER_SETTINGS).flatMap(([name, setting]) =>
    ['OTEL_EXPORTER_OTLP_', 'OTEL_EXPORTER_OTLP_TRACES_'].map((prefix) => [prefix + name, setting.optional()]),
  ),
);

/** Settings of OpenTelemetry that the SDK does not read. */
const tracingSettings = z
  .object({
    OTEL_SDK_DISABLED: z.enum(['true', 'false'], 'must be true or false').default('false'),
    OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none'], 'must be otlp or none').default('otlp'),
    OTEL_SERVICE_NAME: z.string().optional(),
    OTEL_TRACES_SAMPLER: z.enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`).default('parentbased_always_on'),
    OTEL_TRACES_SAMPLER_ARG: z
      .string()
      .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .default(1),
    OTEL_BSP_SCHEDULE_DELAY: countSetting(5_000, 600_000),
    OTEL_BSP_EXPORT_TIMEOUT: countSetting(30_000, 600_000),
    OTEL_BSP_MAX_QUEUE_SIZE: countSetting(2_048),
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: countSetting(512),
  })
  .refine(({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: batch, OTEL_BSP_MAX_QUEUE_SIZE: queue }) => batch <= queue, {
    path: ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'],
    message: 'must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048 unless set)',
  });

export type TracingConfig = z.output<typeof tracingSettings>;

/** Reads the settings of traces; undefined unless an endpoint is set. Throws ConfigError. */
export function readTracingConfig(env: NodeJS.ProcessEnv): TracingConfig | undefined {
  const config = readConfig(tracingSettings.safeExtend(exporterSettings), env);
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = config as Record<string, unknown>;
  const isOff = config.OTEL_SDK_DISABLED === 'true' || config.OTEL_TRACES_EXPORTER === 'none';
  return (all ?? traces) === undefined || isOff ? undefined : (config as TracingConfig);
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
