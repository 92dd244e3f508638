import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import { isMeasuring } from '../metrics/instrument.ts';
import { activeTracer, type Tracer } from '../tracing/tracer.ts';
import { rpcSpan } from './observed-method.ts';
import { NO_TRACE, TRACEPARENT_HEADER } from './route.ts';
import { type CallObserver, codeName, observerOf, rpcCalled } from './rpc-metrics.ts';
import type { HeaderSource } from './unary-context.ts';

type Unary = Transport['unary'];

/** A transport whose unary calls are measured and traced; the very same while nobody asks for either. */
export function observeTransport<T extends Transport>(transport: T): T {
  const tracer = activeTracer();
  const observers = new Map<DescMethodUnary, CallObserver | undefined>();
  const observerFor = (method: DescMethodUnary) => {
    if (!observers.has(method)) observers.set(method, observerOf(rpcCalled, method.parent.typeName, method.name));
    return observers.get(method);
  };
  let unary: Unary = (...args) => transport.unary(...args);
  if (tracer) unary = traced(unary, tracer);
  if (isMeasuring()) unary = measured(unary, observerFor);
  return tracer || isMeasuring() ? { ...transport, unary } : transport;
}

function measured(unary: Unary, observerFor: (method: DescMethodUnary) => CallObserver | undefined): Unary {
  return async (method, ...args) => {
    const startedAt = performance.now();
    const observer = observerFor(method);
    try {
      const answer = await unary(method, ...args);
      observer?.ok((performance.now() - startedAt) / 1_000);
      return answer;
    } catch (err) {
      observer?.failed((performance.now() - startedAt) / 1_000, codeName(err));
      throw err;
    }
  };
}

/** The other end gets to know the span of the call by a header (W3C Trace Context). */
function traced(unary: Unary, tracer: Tracer): Unary {
  return async (method, signal, timeoutMs, header, ...rest) => {
    if (tracer.traceparent() === undefined) {
      return unary(method, signal, timeoutMs, withTraceparent(header, NO_TRACE), ...rest);
    }
    const span = tracer.start({ ...rpcSpan(method), kind: 'client' });
    try {
      const withSpan = withTraceparent(header, span.traceparent);
      return await tracer.within(span, () => unary(method, signal, timeoutMs, withSpan, ...rest));
    } catch (err) {
      span.fail(codeName(err));
      throw err;
    } finally {
      span.end();
    }
  };
}

function withTraceparent(header: HeaderSource, traceparent: string): Headers {
  const headers = new Headers(header);
  headers.set(TRACEPARENT_HEADER, traceparent);
  return headers;
}
