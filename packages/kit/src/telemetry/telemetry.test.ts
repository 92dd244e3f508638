import { expect, it } from 'vitest';
import { problemsOf } from '../testing/config-problems.ts';
import { readTelemetryConfig } from './telemetry.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';
const OTHER = 'another-secret-of-thirty-two-characters';
const METRICS = { METRICS_PORT: '9464', METRICS_TOKEN: TOKEN };
const TRACES = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

it('measures and traces only if a port or an endpoint is set', () => {
  const nothing = { metrics: undefined, tracing: undefined };
  expect(readTelemetryConfig({})).toEqual(nothing);
  expect(readTelemetryConfig({ METRICS_TOKEN: TOKEN, OTEL_TRACES_SAMPLER: 'always_on' })).toEqual(nothing);
  expect(readTelemetryConfig(TRACES).tracing).toBeDefined();
  const metrics = { host: '127.0.0.1', port: 9_464, token: TOKEN };
  expect(readTelemetryConfig({ ...METRICS, HOST: '127.0.0.1' })).toEqual({ metrics, tracing: undefined });
  for (const off of [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])
    expect(readTelemetryConfig({ ...TRACES, ...off })).toEqual(nothing);
});

it.each<[NodeJS.ProcessEnv, string[]]>([
  [{ METRICS_PORT: '9464' }, ['METRICS_TOKEN is required with METRICS_PORT']],
  [{ METRICS_PORT: 'x' }, ['METRICS_PORT must be a whole number from 0 to 65535', 'METRICS_TOKEN is required with METRICS_PORT']],
  [{ ...METRICS, METRICS_TOKEN: `${TOKEN} ${TOKEN}` }, ['METRICS_TOKEN must be of printable ASCII characters, without blanks']],
  [{ ...METRICS, SERVICE_CREDENTIALS: `${OTHER}, ${TOKEN}` }, ['METRICS_TOKEN must be none of SERVICE_CREDENTIALS']],
  [{ ...METRICS, SERVICE_CREDENTIALS: OTHER }, []],
  [
    { OTEL_BSP_MAX_QUEUE_SIZE: '100' },
    ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048 unless set)'],
  ],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x, a = b', OTEL_EXPORTER_OTLP_CERTIFICATE: import.meta.filename }, []],
])('checks %j', (env, problems) => {
  expect(problemsOf(() => readTelemetryConfig(env))).toEqual(problems);
});

it.each<[name: string, value: string]>([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ['OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', 'zip'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'nonsense'],
  ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/nope'],
])('rejects %s=%s', (name, value) => {
  expect(problemsOf(() => readTelemetryConfig({ [name]: value }))).toEqual([expect.stringMatching(`^${name} `)]);
});
