import { describe, expect, it } from 'vitest';
import { readTelemetryConfig } from './telemetry.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';

const problemsOf = (env: NodeJS.ProcessEnv): string[] => {
  try {
    readTelemetryConfig(env);
  } catch (err) {
    return (err as Error).message.split('\n');
  }
  return [];
};

describe('settings', () => {
  it('ask for nothing unless they are set, also where only what goes with them is', () => {
    const nothing = { metrics: undefined, tracing: undefined };
    expect(readTelemetryConfig({})).toEqual(nothing);
    expect(readTelemetryConfig({ METRICS_TOKEN: TOKEN, METRICS_HOST: '::1', OTEL_TRACES_SAMPLER: 'always_on' })).toEqual(nothing);
  });

  it('of metrics are a port, an address and a token', () => {
    const { metrics } = readTelemetryConfig({ METRICS_PORT: '9464', METRICS_TOKEN: TOKEN });
    expect(metrics).toEqual({ host: '0.0.0.0', port: 9_464, token: TOKEN });
  });

  it('of metrics keep to the address of the process, unless they have one of their own', () => {
    const env = { METRICS_PORT: '9464', METRICS_TOKEN: TOKEN, HOST: '127.0.0.1' };
    expect(readTelemetryConfig(env).metrics?.host).toBe('127.0.0.1');
    expect(readTelemetryConfig({ ...env, METRICS_HOST: '::' }).metrics?.host).toBe('::');
  });

  it.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])('of traces can be overruled: %o', (env) => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
    expect(readTelemetryConfig(endpoint).tracing).toBeDefined();
    expect(readTelemetryConfig({ ...endpoint, ...env }).tracing).toBeUndefined();
  });

  it('that are wrong are all named at once, and no value of theirs', () => {
    expect(problemsOf({ METRICS_PORT: '9464' })).toEqual(['METRICS_TOKEN is required with METRICS_PORT']);
    const problems = problemsOf({
      METRICS_PORT: '70000',
      METRICS_TOKEN: 'short-secret',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_TRACES_SAMPLER: 'sometimes',
      OTEL_TRACES_SAMPLER_ARG: '2',
      OTEL_BSP_MAX_QUEUE_SIZE: '-1',
    });
    const names = [
      'METRICS_PORT',
      'METRICS_TOKEN',
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'OTEL_EXPORTER_OTLP_PROTOCOL',
      'OTEL_TRACES_SAMPLER',
      'OTEL_TRACES_SAMPLER_ARG',
      'OTEL_BSP_MAX_QUEUE_SIZE',
    ];
    expect(problems.map((problem) => problem.split(' ')[0]).toSorted()).toEqual(names.toSorted());
    expect(problems.join()).not.toContain('short-secret');
    const exporter = {
      OTEL_EXPORTER_OTLP_TIMEOUT: 'NaN',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'zip',
      OTEL_EXPORTER_OTLP_HEADERS: 'nonsense',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/nope',
      OTEL_EXPORTER_OTLP_CLIENT_KEY: '/etc',
    };
    expect(
      problemsOf(exporter)
        .map((problem) => problem.split(' ')[0])
        .toSorted(),
    ).toEqual(Object.keys(exporter).toSorted());
    expect(problemsOf({ OTEL_BSP_MAX_QUEUE_SIZE: '100' })).toEqual([
      'OTEL_BSP_MAX_EXPORT_BATCH_SIZE must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048 unless set)',
    ]);
    const right = {
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x, a = b',
      OTEL_EXPORTER_OTLP_CERTIFICATE: import.meta.filename,
    };
    expect(problemsOf(right)).toEqual([]);
    expect(problemsOf({ METRICS_PORT: 'x' })).toContain('METRICS_TOKEN is required with METRICS_PORT');
  });
});
