import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, SpanKind as Kind, type Span, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { parseTraceParent, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from '../logger.ts';
import { within } from '../within.ts';
import { samplerOf } from './sampler.ts';
import type { TracingConfig } from './settings.ts';
import type { ActiveSpan, SpanAttributes, SpanKind, SpanOptions, TraceFacts, Tracer } from './tracer.ts';

const KINDS: Readonly<Record<SpanKind, Kind>> = {
  internal: Kind.INTERNAL,
  server: Kind.SERVER,
  client: Kind.CLIENT,
  producer: Kind.PRODUCER,
  consumer: Kind.CONSUMER,
};

/** Longest wait for the last spans to be taken when the process stops, in milliseconds. */
const FLUSH_TIMEOUT_MS = 2_000;
/** A collector that takes nothing is told of once in so long, in milliseconds. */
const TROUBLE_INTERVAL_MS = 60_000;
/** Spans are small; what would make one large is cut off. */
const LIMITS = { attributeCountLimit: 32, attributeValueLengthLimit: 256, eventCountLimit: 8, linkCountLimit: 4 };

/**
 * Keeps spans with the SDK of OpenTelemetry and sends them to a collector, in batches behind the scenes. What a collector that is away or slow does not
 * take is dropped beyond the size of the queue. This is the only module that loads the SDK.
 */
export class OpenTelemetryTracer implements Tracer {
  readonly #provider: TracerProvider;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;

  /** @param service becomes `service.name`, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise */
  constructor(service: string, config: TracingConfig, logger: Logger) {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    setGlobalErrorHandler(logTrouble(logger));
    this.#provider = new TracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ 'service.name': `latchkey-${service}`, 'process.pid': process.pid }))
        .merge(detectResources({ detectors: [envDetector] })),
      sampler: samplerOf(config),
      spanLimits: LIMITS,
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: new OTLPTraceExporter(),
          scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
          exportTimeoutMillis: config.OTEL_BSP_EXPORT_TIMEOUT,
          maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
          maxExportBatchSize: config.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer('latchkey');
  }

  start({ name, kind, attributes, parent, link }: SpanOptions): ActiveSpan {
    const linked = link === undefined ? undefined : parseTraceParent(link);
    const options = {
      kind: KINDS[kind],
      ...(attributes && { attributes }),
      ...(link !== undefined && { root: true }),
      ...(linked && { links: [{ context: { ...linked, isRemote: true } }] }),
    };
    return new OpenTelemetrySpan(this.#tracer.startSpan(name, options, contextOf(parent)));
  }

  within<T>(span: ActiveSpan, run: () => T): T {
    return context.with((span as OpenTelemetrySpan).context, run);
  }

  traceparent(): string | undefined {
    const span = trace.getActiveSpan();
    return span && format(span);
  }

  facts(): TraceFacts | undefined {
    const span = trace.getActiveSpan()?.spanContext();
    // Of one that is not kept there is nothing to look up.
    if (!span || (span.traceFlags & TraceFlags.SAMPLED) === 0) return undefined;
    return { trace_id: span.traceId, span_id: span.spanId };
  }

  /** Sends what is left, within two seconds, and keeps nothing more. */
  async stop(): Promise<void> {
    await within(FLUSH_TIMEOUT_MS, this.#provider.shutdown());
  }
}

class OpenTelemetrySpan implements ActiveSpan {
  readonly #span: Span;
  readonly context: Context;

  constructor(span: Span) {
    this.#span = span;
    this.context = trace.setSpan(context.active(), span);
  }

  get traceparent(): string {
    return format(this.#span);
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(attributes);
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  fail(reason: string): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.setAttribute('error.type', reason);
  }

  end(): void {
    this.#span.end();
  }
}

function contextOf(parent: string | undefined): Context {
  const remote = parent === undefined ? null : parseTraceParent(parent);
  return remote ? trace.setSpanContext(context.active(), { ...remote, isRemote: true }) : context.active();
}

function format(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function logTrouble(logger: Logger): (err: unknown) => void {
  // The line belongs to no request, though one may have been under way when the spans were sent.
  const outside = AsyncLocalStorage.snapshot();
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (err) => {
    if (performance.now() - loggedAt < TROUBLE_INTERVAL_MS) return;
    loggedAt = performance.now();
    // What the collector answered may be long, and is not needed.
    const reason = (err instanceof Error ? err.message : String(err)).slice(0, 200);
    outside(() => logger.warn({ reason }, 'traces are not taken'));
  };
}
