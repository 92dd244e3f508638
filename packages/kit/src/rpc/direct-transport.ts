import { create, type DescMessage, type DescMethodUnary, type Message, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, createRouterTransport, type Transport, type UnaryResponse } from '@connectrpc/connect';
import type { Logger } from '../logger.ts';
import { bindMethods, methodPath } from './bound-method.ts';
import { type CallBounds, withinBounds } from './call-bounds.ts';
import { DEADLINE_MS_MAX, REQUEST_ID_HEADER, type RpcRoute } from './route.ts';
import { type HeaderSource, UnaryContext } from './unary-context.ts';

/**
 * A transport that calls the handlers of this process. Nothing is serialised: a request and its answer are shared with
 * the handler, and neither side may change what it was given. Errors, deadlines and cancellation are those of the wire.
 */
export function createDirectTransport(routes: readonly RpcRoute[], logger: Logger): Transport {
  const methods = bindMethods(routes, logger);
  const streams = createRouterTransport((router) => {
    for (const { service, impl } of routes) router.service(service, impl);
  });
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const bound = methods.get(methodPath(method));
      if (!bound) throw new ConnectError(`${methodPath(method)} is not implemented`, Code.Unimplemented);
      const message = '$typeName' in input ? (input as Message) : create(method.input as DescMessage, input);
      const bounds: CallBounds = { signal, timeoutMs: timeoutMs ?? DEADLINE_MS_MAX };
      const context = new UnaryContext(bound.method, methodPath(method), header, bounds.timeoutMs, values);
      const output = await withinBounds(bounds, context, () => bound.invoke(message, context, requestIdOf(header)));
      return directResponse(method, context, output);
    },
    stream: (...args) => streams.stream(...args),
  };
}

function requestIdOf(header: HeaderSource): string {
  if (header === undefined) return '';
  if (!(header instanceof Headers) && !Array.isArray(header)) {
    return (header as Record<string, string>)[REQUEST_ID_HEADER] ?? '';
  }
  return new Headers(header).get(REQUEST_ID_HEADER) ?? '';
}

function directResponse<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  context: UnaryContext,
  message: Message,
): UnaryResponse<I, O> {
  return {
    stream: false,
    service: method.parent,
    method,
    message: message as MessageShape<O>,
    get header() {
      return context.responseHeader;
    },
    get trailer() {
      return context.responseTrailer;
    },
  };
}
