import { readTogether } from './config.ts';
import { stopAll } from './lifecycle.ts';
import { createLogger, type Logger } from './logger.ts';
import { recordWith } from './metrics/instrument.ts';
import type { MetricsServer } from './metrics/metrics-server.ts';
import { type MetricsConfig, readMetricsConfig } from './metrics/settings.ts';
import { readTracingConfig, type TracingConfig } from './tracing/settings.ts';
import { traceWith } from './tracing/tracer.ts';

/** What of a process is to be seen from outside; nothing unless asked for. */
export interface TelemetryConfig {
  readonly metrics: MetricsConfig | undefined;
  readonly tracing: TracingConfig | undefined;
}

/** What shows how a process does. */
export interface Telemetry {
  /** Port that metrics are served on, once they are. */
  readonly metricsPort: number | undefined;
  /** Begins to serve metrics, where they are asked for. */
  listen(): Promise<void>;
  /** Sends the last spans, within two seconds, and stops to serve metrics: the last thing that a process does. */
  stop(): Promise<void>;
}

/** Reads the settings of metrics and traces. Throws ConfigError. */
export function readTelemetryConfig(env: NodeJS.ProcessEnv): TelemetryConfig {
  const [metrics, tracing] = readTogether(
    () => readMetricsConfig(env),
    () => readTracingConfig(env),
  );
  return { metrics, tracing };
}

/**
 * Has a process measure and trace what it does, where its settings ask for that; else nothing is loaded, and nothing recorded. It has to be called before
 * services are composed.
 *
 * @param name name of the service, without `latchkey-`
 * @param logger one of its own unless given
 */
export async function openTelemetry(name: string, config: TelemetryConfig, logger?: Logger): Promise<Telemetry> {
  const { metrics, tracing } = config;
  const exposition = metrics && new (await import('./metrics/prometheus.ts')).PrometheusRecorder(name);
  if (exposition) recordWith(exposition);
  const tracer = tracing && (await openTracer(name, tracing, logger));
  if (tracer) traceWith(tracer);
  let server: MetricsServer | undefined;
  return {
    get metricsPort() {
      return server?.port;
    },
    async listen() {
      if (!metrics || !exposition) return;
      const { startMetricsServer } = await import('./metrics/metrics-server.ts');
      server = await startMetricsServer(metrics, exposition);
    },
    stop: () =>
      stopAll(
        () => tracer?.stop(),
        () => server?.stop(),
      ),
  };
}

async function openTracer(name: string, config: TracingConfig, logger = createLogger(name, 'warn')) {
  return new (await import('./tracing/open-telemetry.ts')).OpenTelemetryTracer(name, config, logger);
}
