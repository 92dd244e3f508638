import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { onBehalfOf } from '../call-origin.ts';
import { activeTracer, type SpanOptions, type Tracer } from '../tracing/tracer.ts';
import { NO_TRACE, TRACEPARENT_HEADER } from './route.ts';
import { type CallObserver, codeName, observerOf, rpcServed } from './rpc-metrics.ts';

/** A handler, ready to be called with a message, its context and the id of the request. */
type Invoke = (input: Message, context: HandlerContext, requestId: string) => Promise<Message>;

/**
 * Has the calls of a method measured and traced, where that is asked for, and lets what a call queues know its request. Reads queue nothing, so that
 * while nobody measures or traces they are what they were.
 *
 * @param isDirect whether calls come from this process alone: those that are nobody's in particular begin no trace then
 */
export function observeMethod(method: DescMethodUnary, handler: Invoke, isDirect: boolean): Invoke {
  const tracer = activeTracer();
  const observer = observerOf(rpcServed, method.parent.typeName, method.name);
  let invoke = handler;
  if (method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) invoke = withOrigin(invoke);
  if (tracer) invoke = traced(invoke, method, { tracer, isDirect });
  if (observer) invoke = measured(invoke, observer);
  return invoke;
}

function withOrigin(invoke: Invoke): Invoke {
  return (input, context, requestId) => onBehalfOf(requestId, () => invoke(input, context, requestId));
}

function measured(invoke: Invoke, { ok, failed }: CallObserver): Invoke {
  return async (input, context, requestId) => {
    const startedAt = performance.now();
    try {
      const output = await invoke(input, context, requestId);
      ok((performance.now() - startedAt) / 1_000);
      return output;
    } catch (err) {
      failed((performance.now() - startedAt) / 1_000, codeName(err));
      throw err;
    }
  };
}

interface Tracing {
  readonly tracer: Tracer;
  readonly isDirect: boolean;
}

function traced(invoke: Invoke, method: DescMethodUnary, { tracer, isDirect }: Tracing): Invoke {
  return async (input, context, requestId): Promise<Message> => {
    const isNobodys = isDirect ? tracer.traceparent() === undefined : context.requestHeader.get(TRACEPARENT_HEADER) === NO_TRACE;
    if (isNobodys) return invoke(input, context, requestId);
    const span = tracer.start({ ...rpcSpan(method), ...place(context, tracer) });
    try {
      return await tracer.within(span, () => invoke(input, context, requestId));
    } catch (err) {
      span.fail(codeName(err));
      throw err;
    } finally {
      span.end();
    }
  };
}

/** Callers have shown a credential by now, so that what they say of their trace is believed. Within one process there is but one span for a call. */
function place({ requestHeader }: HandlerContext, tracer: Tracer): Pick<SpanOptions, 'kind' | 'parent'> {
  const parent = requestHeader.get(TRACEPARENT_HEADER) ?? undefined;
  return { kind: parent === undefined && tracer.traceparent() !== undefined ? 'internal' : 'server', parent };
}

/** What spans of calls of a method have in common at both ends. */
export function rpcSpan(method: DescMethodUnary): Omit<SpanOptions, 'kind'> {
  const name = `${method.parent.typeName}/${method.name}`;
  return { name, attributes: { 'rpc.system.name': 'connectrpc', 'rpc.method': name } };
}
