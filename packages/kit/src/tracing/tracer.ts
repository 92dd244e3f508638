/** What part a span plays, as OpenTelemetry tells them apart. */
export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/** Attributes by the semantic conventions of OpenTelemetry. Never an id of a person, a secret, a query string or a name that a client chose. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** What a span starts with. */
export interface SpanOptions {
  /** Of a small set, like the labels of metrics. */
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: SpanAttributes;
  /** `traceparent` (W3C Trace Context) of a peer that is trusted, of whose trace this becomes a part; the active span is the parent otherwise. */
  readonly parent?: string | undefined;
  /** `traceparent` of somebody who is not: the span begins a trace of its own, whatever that says of sampling, and only names the other. */
  readonly link?: string | undefined;
}

/** A span under way. */
export interface ActiveSpan {
  /** What makes others a part of the trace. */
  readonly traceparent: string;
  set(attributes: SpanAttributes): void;
  rename(name: string): void;
  /** Marks the span as failed, by a reason of a small set. */
  fail(reason: string): void;
  end(): void;
}

/** Facts of log lines. */
export interface TraceFacts {
  readonly trace_id: string;
  readonly span_id: string;
}

/** What keeps spans. */
export interface Tracer {
  start(options: SpanOptions): ActiveSpan;
  /** Runs something with a span active, which is the parent of what is started meanwhile. */
  within<T>(span: ActiveSpan, run: () => T): T;
  /** `traceparent` of the active span. */
  traceparent(): string | undefined;
  /** Those of the active span. */
  facts(): TraceFacts | undefined;
}

let tracer: Tracer | undefined;

/** Has spans of this process kept from now on. */
export function traceWith(given: Tracer): void {
  tracer = given;
}

/** What keeps spans; undefined while nobody wants any. It is settled before services are composed. */
export function activeTracer(): Tracer | undefined {
  return tracer;
}

/** Runs something inside a span, where spans are kept. A rejection marks it as failed. */
export async function inSpan<T>(options: SpanOptions, run: (span: ActiveSpan | undefined) => Promise<T>): Promise<T> {
  if (!tracer) return run(undefined);
  const span = tracer.start(options);
  try {
    return await tracer.within(span, () => run(span));
  } catch (err) {
    span.fail(err instanceof Error ? err.name : 'unknown');
    throw err;
  } finally {
    span.end();
  }
}
