import { create, type DescMessage, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import { isDatabaseUnavailable, isMissingTable } from '../../database/database.ts';
import { commonErrors, DomainError, fromConnectError, toConnectError } from '../../errors/errors.ts';
import { createLineLog, type Logger } from '../../log/logger.ts';
import { onBehalfOf } from '../../log/request-context.ts';
import { activeTracer, type Span, type Tracer } from '../../telemetry/tracing.ts';
import { endedBy, runCall, timeLeftMs } from '../call.ts';
import { DEADLINES_MS } from '../deadlines.ts';
import { callTimer, observed, rpcServed, rpcSpan } from '../observe.ts';
import { isRead, methodPath, NO_TRACE, REQUEST_ID_HEADER, type RpcRoute, TRACEPARENT_HEADER } from '../route.ts';
import type { CallCounter } from './call-counter.ts';

type Handler = (input: Message, context: HandlerContext) => Promise<MessageInitShape<DescMessage>>;

/**
 * Runs a handler, and logs, measures and traces the call.
 *
 * @throws ConnectError; anything but a domain error is logged and masked as `internal`
 */
type Invoke = (input: Message, context: HandlerContext, requestId: string) => Promise<Message>;

export interface UnaryMethod {
  readonly method: DescMethodUnary;
  readonly invoke: Invoke;
}

/**
 * The unary methods of all routes, by path.
 *
 * @param isDirect whether callers are in this process, which has logged the request
 */
export function bindMethods(
  routes: readonly RpcRoute[],
  logger: Logger,
  { isDirect = false } = {},
): ReadonlyMap<string, UnaryMethod> {
  const bound = new Map<string, UnaryMethod>();
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const handler = impl[method.localName];
      if (method.methodKind !== 'unary' || !handler) continue;
      const unary = method as DescMethodUnary;
      const invoke = bindHandler(unary, (handler as unknown as Handler).bind(impl), logger, isDirect ? 'debug' : 'info');
      bound.set(methodPath(unary), { method: unary, invoke: observeMethod(unary, invoke, isDirect) });
    }
  }
  return bound;
}

function bindHandler(method: DescMethodUnary, handler: Handler, logger: Logger, level: 'info' | 'debug'): Invoke {
  const rpc = methodPath(method).slice(1);
  const logCall = createLineLog(logger, level, 'rpc');
  return async (input, context, requestId) => {
    const startedAt = performance.now();
    try {
      const output = create(method.output, await handler(input, context));
      logCall({ requestId, rpc, ms: elapsedMs(startedAt) });
      return output;
    } catch (err) {
      throw reject(err, context.signal, logger, { requestId, rpc, ms: elapsedMs(startedAt) });
    }
  };
}

/** Milliseconds since a time of `performance.now()`, to the microsecond. */
export function elapsedMs(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 1000) / 1000;
}

/** Jobs that a call queues carry its request id; reads queue none. */
function observeMethod(method: DescMethodUnary, handler: Invoke, isDirect: boolean): Invoke {
  const invoke: Invoke = isRead(method) ? handler : (...call) => onBehalfOf(call[2], () => handler(...call));
  const tracer = activeTracer();
  const timer = callTimer(rpcServed, method);
  if (!tracer && !timer) return invoke;
  return (input, context, requestId) => {
    const span = tracer && startSpan(tracer, method, context.requestHeader, isDirect);
    return observed(timer, span, () => invoke(input, context, requestId));
  };
}

/** Callers have presented a credential by now, so their `traceparent` is trusted. */
function startSpan(tracer: Tracer, method: DescMethodUnary, header: Headers, isDirect: boolean): Span | undefined {
  const parent = header.get(TRACEPARENT_HEADER) ?? undefined;
  const current = tracer.traceparent();
  if (isDirect ? current === undefined : parent === NO_TRACE) return undefined;
  const kind = parent === undefined && current !== undefined ? 'internal' : 'server';
  return tracer.start({ ...rpcSpan(method), kind, parent });
}

/** Registers methods with connect-node's router, with deadlines, which it leaves to handlers. */
export function registerMethods(router: ConnectRouter, methods: ReadonlyMap<string, UnaryMethod>, calls: CallCounter): void {
  for (const { method, invoke } of methods.values()) {
    router.rpc(method, (input: Message, context: HandlerContext) => {
      const timeoutMs = Math.min(context.timeoutMs() ?? DEADLINES_MS.longest, DEADLINES_MS.longest);
      const deadlineAt = performance.now() + timeoutMs;
      const call = new AbortController();
      const bounded = { ...context, signal: call.signal, timeoutMs: () => timeLeftMs(deadlineAt) };
      const requestId = context.requestHeader.get(REQUEST_ID_HEADER) ?? '';
      const overload = calls.enter();
      if (overload) throw overload;
      const limits = { signal: context.signal, timeoutMs };
      return runCall(limits, call, () => invoke(input, bounded, requestId)).finally(() => calls.leave());
    });
  }
}

/**
 * Logs why a call failed, and returns what its caller may know.
 *
 * @param facts request id, method and duration for the log line
 */
export function reject(err: unknown, signal: AbortSignal, logger: Logger, facts: object): ConnectError {
  // A failure after the call's end is a consequence of that end.
  if (signal.aborted) {
    const error = endedBy(signal);
    logger.info({ ...facts, reason: error.code === Code.Canceled ? 'canceled' : 'deadline_exceeded' }, 'rpc rejected');
    return error;
  }
  const domain = err instanceof DomainError || err instanceof ConnectError ? fromConnectError(err) : undefined;
  const isMigrating = isMissingTable(err);
  const known = domain ?? (isMigrating || isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
  const reason = known?.reason ?? 'internal';
  // A missing table appears by itself, once another process has migrated.
  if (!domain && isMigrating) logger.warn({ ...facts, reason, problem: err.message }, 'rpc rejected');
  else if (!known || known.httpStatus === 503) logger.error({ ...facts, reason, err }, 'rpc failed');
  else logger.info({ ...facts, reason }, 'rpc rejected');
  return known ? toConnectError(known) : internalError();
}

/** Public form of a defect. */
export function internalError(): ConnectError {
  return new ConnectError('internal error', Code.Internal);
}
