import { AsyncLocalStorage } from 'node:async_hooks';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import * as sdk from '@opentelemetry/sdk-trace';
import { within } from '../concurrency/within.ts';
import type { Logger } from '../log/logger.ts';
import type { TracingConfig } from './settings.ts';
import { enableTracing } from './tracing.ts';

const FLUSH_TIMEOUT_MS = 2_000;
/** An unreachable collector is logged once in so long, in milliseconds. */
const ERROR_INTERVAL_MS = 60_000;
const LIMITS = { attributeCountLimit: 32, attributeValueLengthLimit: 256, eventCountLimit: 8, linkCountLimit: 4 };

/**
 * Exports the spans of this process to an OpenTelemetry collector, in batches; they are dropped
 * while the queue is full. Returns a function that sends the last ones, within two seconds, and
 * stops.
 */
export function startTracing(service: string, config: TracingConfig, logger: Logger): () => Promise<void> {
  setGlobalErrorHandler(createErrorLog(logger));
  const provider = new sdk.TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': `latchkey-${service}`, 'process.pid': process.pid }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: createSampler(config),
    spanLimits: LIMITS,
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
        exportTimeoutMillis: config.OTEL_BSP_EXPORT_TIMEOUT,
        maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: config.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
      }),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.disable();
  trace.setGlobalTracerProvider(provider);
  enableTracing();
  return () => within(FLUSH_TIMEOUT_MS, provider.shutdown());
}

/** The sampler that OTEL_TRACES_SAMPLER names; the SDK does not read that setting. */
export function createSampler(config: Pick<TracingConfig, 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'>): sdk.Sampler {
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio } = config;
  const rootName = name.replace(/^parentbased_/, '');
  const sampled = rootName === 'traceidratio' ? new sdk.TraceIdRatioBasedSampler(ratio) : new sdk.AlwaysOnSampler();
  const root = rootName === 'always_off' ? new sdk.AlwaysOffSampler() : sampled;
  return name === rootName ? root : new sdk.ParentBasedSampler({ root });
}

function createErrorLog(logger: Logger): (err: unknown) => void {
  // Export runs in the async context of the request that filled the batch; the line has none.
  const outside = AsyncLocalStorage.snapshot();
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (err) => {
    if (performance.now() - loggedAt < ERROR_INTERVAL_MS) return;
    loggedAt = performance.now();
    const reason = (err instanceof Error ? err.message : String(err)).slice(0, 200);
    outside(() => logger.warn({ reason }, 'exporting traces failed'));
  };
}
