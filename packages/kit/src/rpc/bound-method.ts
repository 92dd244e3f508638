import { create, type DescMessage, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { isDatabaseUnavailable } from '../database/database.ts';
import { commonErrors, DomainError, fromConnectError, toConnectError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { RpcRoute } from './route.ts';

/** A unary method ready to be called from any path: direct, lean or through connect-node. */
export interface BoundMethod {
  readonly method: DescMethodUnary;
  /**
   * Runs the handler and logs the call under its request id.
   *
   * @throws ConnectError; anything the handler threw that is no domain error is logged and masked as `internal`
   */
  invoke(input: Message, context: HandlerContext, requestId: string): Promise<Message>;
}

/** URL path of a method, such as `/latchkey.apps.v1.ApplicationService/ListApplications`. */
export function methodPath(method: { parent: { typeName: string }; name: string }): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Binds the unary methods of all routes, by path. */
export function bindMethods(routes: readonly RpcRoute[], logger: Logger): ReadonlyMap<string, BoundMethod> {
  const bound = new Map<string, BoundMethod>();
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const handler = impl[method.localName];
      if (method.methodKind !== 'unary' || !handler) continue;
      const unary = method as DescMethodUnary;
      bound.set(methodPath(unary), bindMethod(unary, handler as unknown as UnaryHandler, logger));
    }
  }
  return bound;
}

type UnaryHandler = (input: Message, context: HandlerContext) => Promise<MessageInitShape<DescMessage>>;

function bindMethod(method: DescMethodUnary, handler: UnaryHandler, logger: Logger): BoundMethod {
  const rpc = `${method.parent.typeName}/${method.name}`;
  return {
    method,
    async invoke(input, context, requestId) {
      const startedAt = performance.now();
      try {
        const output = await handler(input, context);
        logger.info({ requestId, rpc, ms: elapsedMs(startedAt) }, 'rpc');
        return '$typeName' in output ? (output as Message) : create(method.output, output);
      } catch (err) {
        const outcome = maskError(err);
        const facts = { requestId, rpc, ms: elapsedMs(startedAt), reason: outcome.reason };
        if (outcome.unexpected) logger.error({ ...facts, err }, 'rpc failed');
        else logger.info(facts, 'rpc refused');
        throw outcome.error;
      }
    },
  };
}

/** Whole microseconds are exact enough, and keep the line short. */
function elapsedMs(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 1000) / 1000;
}

interface Outcome {
  readonly error: ConnectError;
  readonly reason: string;
  readonly unexpected: boolean;
}

/** What the caller may know of a failure. */
function maskError(err: unknown): Outcome {
  const domain = err instanceof DomainError || err instanceof ConnectError ? fromConnectError(err) : undefined;
  if (domain) return { error: toConnectError(domain), reason: domain.reason, unexpected: domain.kind === 'unavailable' };
  if (isDatabaseUnavailable(err)) {
    const unavailable = commonErrors.dependency_unavailable();
    return { error: toConnectError(unavailable), reason: unavailable.reason, unexpected: true };
  }
  if (err instanceof ConnectError && err.code === Code.Canceled) return { error: err, reason: 'canceled', unexpected: false };
  return { error: new ConnectError('internal error', Code.Internal), reason: 'internal', unexpected: true };
}
