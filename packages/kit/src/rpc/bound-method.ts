import { create, type DescMessage, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { isDatabaseUnavailable, isMissingTable } from '../database/database.ts';
import { commonErrors, DomainError, fromConnectError, toConnectError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { endedBy } from './call-bounds.ts';
import { observeMethod } from './observed-method.ts';
import type { RpcRoute } from './route.ts';

/** A unary method ready to be called from any path: direct, lean or through connect-node. */
export interface BoundMethod {
  readonly method: DescMethodUnary;
  /** The method's {@link methodPath}. */
  readonly path: string;
  /**
   * Runs the handler and logs the call under its request id.
   *
   * @throws ConnectError; anything the handler threw that is no domain error is logged and masked as `internal`
   */
  invoke(input: Message, context: HandlerContext, requestId: string): Promise<Message>;
}

/** What a log line says of every call. */
export interface CallFacts {
  readonly requestId: string;
  /** Service and method, such as `latchkey.apps.v1.ApplicationService/ListApplications`. */
  readonly rpc: string;
  readonly ms?: number;
}

const paths = new WeakMap<object, string>();

/** URL path of a method, such as `/latchkey.apps.v1.ApplicationService/ListApplications`. */
export function methodPath(method: { readonly parent: { readonly typeName: string }; readonly name: string }): string {
  let path = paths.get(method);
  if (path === undefined) {
    path = `/${method.parent.typeName}/${method.name}`;
    paths.set(method, path);
  }
  return path;
}

/**
 * Binds the unary methods of all routes, by path.
 *
 * @param successLevel level of the line for a call that succeeded; what failed is always logged
 */
export function bindMethods(
  routes: readonly RpcRoute[],
  logger: Logger,
  successLevel: 'info' | 'debug' = 'info',
): ReadonlyMap<string, BoundMethod> {
  const bound = new Map<string, BoundMethod>();
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const handler = impl[method.localName];
      if (method.methodKind !== 'unary' || !handler) continue;
      const unary = method as DescMethodUnary;
      const call = (handler as unknown as UnaryHandler).bind(impl);
      const own = bindMethod(unary, call, logger, successLevel);
      bound.set(own.path, { ...own, invoke: observeMethod(unary, own.invoke, successLevel === 'debug') });
    }
  }
  return bound;
}

type UnaryHandler = (input: Message, context: HandlerContext) => Promise<MessageInitShape<DescMessage>>;

function bindMethod(method: DescMethodUnary, handler: UnaryHandler, logger: Logger, successLevel: 'info' | 'debug'): BoundMethod {
  const path = methodPath(method);
  const rpc = path.slice(1);
  return {
    method,
    path,
    async invoke(input, context, requestId) {
      const startedAt = performance.now();
      try {
        const output = await handler(input, context);
        const message = '$typeName' in output ? (output as Message) : create(method.output, output);
        if (logger.isLevelEnabled(successLevel)) logger[successLevel]({ requestId, rpc, ms: elapsedMs(startedAt) }, 'rpc');
        return message;
      } catch (err) {
        throw refuse(err, context, logger, { requestId, rpc, ms: elapsedMs(startedAt) });
      }
    },
  };
}

/** Whole microseconds are exact enough, and keep the line short. */
function elapsedMs(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 1000) / 1000;
}

/** Logs how a handler failed, and answers what its caller may know of that. */
export function refuse(
  err: unknown,
  { signal }: { readonly signal: AbortSignal },
  logger: Logger,
  facts: CallFacts,
): ConnectError {
  // What fails after the call was over fails because of that.
  const { error, reason, unexpected, problem } = signal.aborted ? overOutcome(signal) : maskError(err);
  if (unexpected) logger.error({ ...facts, reason, err }, 'rpc failed');
  else if (problem !== undefined) logger.warn({ ...facts, reason, problem }, 'rpc refused');
  else logger.info({ ...facts, reason }, 'rpc refused');
  return error;
}

interface Outcome {
  readonly error: ConnectError;
  readonly reason: string;
  readonly unexpected: boolean;
  /** What an operator may want to know of a refusal that passes by itself. */
  readonly problem?: string;
}

function overOutcome(signal: AbortSignal): Outcome {
  const error = endedBy(signal);
  return { error, reason: error.code === Code.Canceled ? 'canceled' : 'deadline_exceeded', unexpected: false };
}

/** What a caller may know of a failure. */
export function maskError(err: unknown): Outcome {
  const domain = err instanceof DomainError || err instanceof ConnectError ? fromConnectError(err) : undefined;
  if (domain) return { error: toConnectError(domain), reason: domain.reason, unexpected: domain.kind === 'unavailable' };
  // A schema that is yet to be migrated, as in a first rollout, is no defect.
  const isEarly = isMissingTable(err);
  if (isEarly || isDatabaseUnavailable(err)) {
    const unavailable = commonErrors.dependency_unavailable();
    const outcome = { error: toConnectError(unavailable), reason: unavailable.reason };
    return isEarly ? { ...outcome, unexpected: false, problem: err.message } : { ...outcome, unexpected: true };
  }
  return { error: internalError(), reason: 'internal', unexpected: true };
}

/** What a caller hears of a defect. */
export function internalError(): ConnectError {
  return new ConnectError('internal error', Code.Internal);
}
