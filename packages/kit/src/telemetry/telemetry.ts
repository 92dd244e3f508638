import { readTogether } from '../config/settings.ts';
import type { AdminListener } from '../http/admin-listener.ts';
import type { ReadinessCheck } from '../http/probes.ts';
import { createLogger, type Logger } from '../log/logger.ts';
import { stopAll } from '../process/lifecycle.ts';
import { startMeasuring } from './metrics.ts';
import { readMetricsConfig, readTracingConfig } from './settings.ts';

export type Telemetry = Awaited<ReturnType<typeof openTelemetry>>;

/** Reads the settings of metrics and traces. Throws ConfigError. */
export function readTelemetryConfig(env: NodeJS.ProcessEnv) {
  const [metrics, tracing] = readTogether(
    () => readMetricsConfig(env),
    () => readTracingConfig(env),
  );
  return { metrics, tracing };
}

/**
 * Starts metrics and traces where settings ask for them; else prom-client and OpenTelemetry's SDK
 * are not loaded. Call it before services are composed.
 */
export async function openTelemetry(name: string, config: ReturnType<typeof readTelemetryConfig>, logger?: Logger) {
  const { metrics, tracing } = config;
  const exposition = metrics && (await startMeasuring(name));
  const stopTracing =
    tracing && (await import('./export-traces.ts')).startTracing(name, tracing, logger ?? createLogger(name, 'warn'));
  let server: AdminListener | undefined;
  return {
    get metricsPort(): number | undefined {
      return server?.port;
    },
    /** Starts to serve metrics and probes on METRICS_PORT, if it is set. */
    async listen(checkReady: ReadinessCheck): Promise<void> {
      if (!metrics || !exposition) return;
      const { startAdminListener } = await import('../http/admin-listener.ts');
      server = await startAdminListener(metrics, exposition, checkReady);
    },
    /** Sends the last spans, within two seconds, and stops the listener. Call it last. */
    stop: (): Promise<void> =>
      stopAll(
        () => stopTracing?.(),
        () => server?.stop(),
      ),
  };
}
