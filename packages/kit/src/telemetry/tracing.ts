import { type Attributes, context, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';

export type { Span } from '@opentelemetry/api';

export interface SpanOptions {
  /** From a small set, like metric labels. */
  readonly name: string;
  readonly kind: Lowercase<keyof typeof SpanKind>;
  /** By OpenTelemetry's semantic conventions. Never a person's id, a secret or client input. */
  readonly attributes?: Attributes;
  /** `traceparent` (W3C Trace Context) of a trusted peer; the active span unless set. */
  readonly parent?: string | undefined;
  /** `traceparent` of an untrusted client: the span starts a new trace that links to it. */
  readonly link?: string | undefined;
}

const api = {
  start({ name, kind, attributes = {}, parent, link }: SpanOptions): Span {
    const linked = parseTraceparent(link);
    const options = {
      kind: SpanKind[kind.toUpperCase() as keyof typeof SpanKind],
      attributes,
      root: link !== undefined,
      links: linked ? [{ context: linked }] : [],
    };
    const remote = parseTraceparent(parent);
    const from = remote ? trace.setSpanContext(context.active(), remote) : context.active();
    return trace.getTracer('latchkey').startSpan(name, options, from);
  },

  within<T>(span: Span, run: () => T): T {
    return context.with(trace.setSpan(context.active(), span), run);
  },

  traceparent(): string | undefined {
    const span = trace.getActiveSpan();
    return span && formatTraceparent(span);
  },

  facts(): { readonly trace_id: string; readonly span_id: string } | undefined {
    const span = trace.getActiveSpan()?.spanContext();
    if (!span || (span.traceFlags & TraceFlags.SAMPLED) === 0) return undefined;
    return { trace_id: span.traceId, span_id: span.spanId };
  },
};

export type Tracer = typeof api;

let isTracing = false;

export function enableTracing(): void {
  isTracing = true;
}

/** The tracer; undefined, whenever services are composed, in a process that exports no traces. */
export function activeTracer(): Tracer | undefined {
  return isTracing ? api : undefined;
}

/** Runs a function inside a span, if traces are exported. A rejection marks the span as failed. */
export async function inSpan<T>(options: SpanOptions, run: (span: Span | undefined) => Promise<T>): Promise<T> {
  if (!isTracing) return run(undefined);
  const span = api.start(options);
  try {
    return await api.within(span, () => run(span));
  } catch (err) {
    failSpan(span, err instanceof Error ? err.name : 'unknown');
    throw err;
  } finally {
    span.end();
  }
}

/** Marks a span as failed, for a reason from a small set. */
export function failSpan(span: Span, reason: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', reason);
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-((?!0{32})[\da-f]{32})-((?!0{16})[\da-f]{16})-([\da-f]{2})$/;

function parseTraceparent(text = '') {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? [];
  if (!traceId || !spanId || !flags) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

export function formatTraceparent(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
