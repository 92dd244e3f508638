import { create, type DescMessage, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import { isDatabaseUnavailable, isMissingTable } from '../../database/database.ts';
import { commonErrors, DomainError, fromConnectError, toConnectError } from '../../errors/errors.ts';
import type { Logger } from '../../log/logger.ts';
import { onBehalfOf } from '../../log/request-context.ts';
import { type ActiveSpan, activeTracer, type Tracer } from '../../telemetry/tracing.ts';
import { endedBy, runCall, timeLeftMs } from '../call.ts';
import { callTimer, observed, rpcServed, rpcSpan } from '../observe.ts';
import { DEADLINE_MS_MAX, methodPath, NO_TRACE, REQUEST_ID_HEADER, type RpcRoute, TRACEPARENT_HEADER } from '../route.ts';
import type { CallCounter } from './call-counter.ts';

/**
 * Runs a handler, and logs, measures and traces the call.
 *
 * @throws ConnectError; anything but a domain error is logged and masked as `internal`
 */
type Invoke = (input: Message, context: HandlerContext, requestId: string) => Promise<Message>;

/** A unary method ready to be called, whatever the protocol. */
export interface BoundMethod {
  readonly method: DescMethodUnary;
  readonly path: string;
  readonly invoke: Invoke;
}

/** What a log line says of every call. */
export interface CallFacts {
  readonly requestId: string;
  /** Service and method, such as `latchkey.apps.v1.ApplicationService/ListApplications`. */
  readonly rpc: string;
  readonly ms: number;
}

/**
 * Binds the unary methods of all routes, by path.
 *
 * @param isDirect whether the callers are in this process: its log then has a line for the request already
 */
export function bindMethods(
  routes: readonly RpcRoute[],
  logger: Logger,
  { isDirect = false } = {},
): ReadonlyMap<string, BoundMethod> {
  const bound = new Map<string, BoundMethod>();
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const handler = impl[method.localName];
      if (method.methodKind !== 'unary' || !handler) continue;
      const unary = method as DescMethodUnary;
      const call = (handler as unknown as UnaryHandler).bind(impl);
      const path = methodPath(unary);
      const invoke = bindHandler(unary, call, logger, isDirect ? 'debug' : 'info');
      bound.set(path, { method: unary, path, invoke: observeMethod(unary, invoke, isDirect) });
    }
  }
  return bound;
}

type UnaryHandler = (input: Message, context: HandlerContext) => Promise<MessageInitShape<DescMessage>>;

function bindHandler(method: DescMethodUnary, handler: UnaryHandler, logger: Logger, level: 'info' | 'debug'): Invoke {
  const rpc = methodPath(method).slice(1);
  return async (input, context, requestId) => {
    const startedAt = performance.now();
    try {
      const output = await handler(input, context);
      const message = '$typeName' in output ? (output as Message) : create(method.output, output);
      if (logger.isLevelEnabled(level)) logger[level]({ requestId, rpc, ms: elapsedMs(startedAt) }, 'rpc');
      return message;
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
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const invoke: Invoke = isRead ? handler : (...call) => onBehalfOf(call[2], () => handler(...call));
  const tracer = activeTracer();
  const timer = callTimer(rpcServed, method);
  if (!tracer && !timer) return invoke;
  return (input, context, requestId) => {
    const span = tracer && startSpan(tracer, method, context, isDirect);
    return observed(timer, span, () => invoke(input, context, requestId));
  };
}

/** Callers have presented a credential by now, so their `traceparent` is trusted. */
function startSpan(
  tracer: Tracer,
  method: DescMethodUnary,
  { requestHeader }: HandlerContext,
  isDirect: boolean,
): ActiveSpan | undefined {
  const parent = requestHeader.get(TRACEPARENT_HEADER) ?? undefined;
  const current = tracer.traceparent();
  if (isDirect ? current === undefined : parent === NO_TRACE) return undefined;
  const kind = parent === undefined && current !== undefined ? 'internal' : 'server';
  return tracer.start({ ...rpcSpan(method), kind, parent });
}

/** Has connect-node's router run bound methods, with deadlines, which it leaves to handlers. */
export function registerMethods(router: ConnectRouter, methods: ReadonlyMap<string, BoundMethod>, calls: CallCounter): void {
  for (const { method, invoke } of methods.values()) {
    router.rpc(method, (input: Message, context: HandlerContext) => {
      const timeoutMs = Math.min(context.timeoutMs() ?? DEADLINE_MS_MAX, DEADLINE_MS_MAX);
      const deadlineAt = performance.now() + timeoutMs;
      const call = new AbortController();
      const bounded = { ...context, signal: call.signal, timeoutMs: () => timeLeftMs(deadlineAt) };
      const requestId = context.requestHeader.get(REQUEST_ID_HEADER) ?? '';
      const overload = calls.enter();
      if (overload) throw overload;
      return runCall({ signal: context.signal, timeoutMs }, call, () => invoke(input, bounded, requestId)).finally(() =>
        calls.leave(),
      );
    });
  }
}

/** Logs why a call failed, and returns what its caller may know. */
export function reject(err: unknown, signal: AbortSignal, logger: Logger, facts: CallFacts): ConnectError {
  // A failure after the call's end is a consequence of that end.
  const { error, reason, isDefect, problem } = signal.aborted ? endOutcome(signal) : maskError(err);
  if (isDefect) logger.error({ ...facts, reason, err }, 'rpc failed');
  else if (problem !== undefined) logger.warn({ ...facts, reason, problem }, 'rpc refused');
  else logger.info({ ...facts, reason }, 'rpc refused');
  return error;
}

interface Outcome {
  readonly error: ConnectError;
  readonly reason: string;
  readonly isDefect: boolean;
  /** For the operator, of a failure that passes by itself. */
  readonly problem?: string;
}

function endOutcome(signal: AbortSignal): Outcome {
  const error = endedBy(signal);
  return { error, reason: error.code === Code.Canceled ? 'canceled' : 'deadline_exceeded', isDefect: false };
}

/** What a caller may know of a failure. */
export function maskError(err: unknown): Outcome {
  const domain = err instanceof DomainError || err instanceof ConnectError ? fromConnectError(err) : undefined;
  if (domain) return { error: toConnectError(domain), reason: domain.reason, isDefect: domain.kind === 'unavailable' };
  const isMigrating = isMissingTable(err);
  if (isMigrating || isDatabaseUnavailable(err)) {
    const unavailable = commonErrors.dependency_unavailable();
    const outcome = { error: toConnectError(unavailable), reason: unavailable.reason, isDefect: !isMigrating };
    return isMigrating ? { ...outcome, problem: err.message } : outcome;
  }
  return { error: internalError(), reason: 'internal', isDefect: true };
}

/** What a caller may know of a defect. */
export function internalError(): ConnectError {
  return new ConnectError('internal error', Code.Internal);
}
