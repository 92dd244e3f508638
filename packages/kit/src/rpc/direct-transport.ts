import { create, type DescMessage, type DescMethodUnary, type Message, type MessageShape } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createRouterTransport,
  type Interceptor,
  type Transport,
  type UnaryResponse,
} from '@connectrpc/connect';
import type { Logger } from '../logger.ts';
import { type BoundMethod, bindMethods, internalError, methodPath } from './bound-method.ts';
import { clientTimeoutMs, withinBounds } from './call-bounds.ts';
import { intercept } from './interceptors.ts';
import { REQUEST_ID_HEADER, type RpcRoute } from './route.ts';
import { boundRouter } from './router.ts';
import { type HeaderSource, UnaryContext } from './unary-context.ts';

/** Settings of {@link createDirectTransport}. */
export interface DirectTransportOptions {
  /** Applied in order around each call; there is no difference between the two ends. None unless set. */
  readonly interceptors?: readonly Interceptor[];
}

/**
 * A transport that calls the handlers of this process. Nothing is serialised: a request and its answer are shared with
 * the handler, and neither side may change what it was given. Errors, deadlines and cancellation are those of the wire; sizes have
 * no limit.
 */
export function createDirectTransport(
  routes: readonly RpcRoute[],
  logger: Logger,
  options: DirectTransportOptions = {},
): Transport {
  // In one process there is one log, and the line of the request is in it already.
  const methods = bindMethods(routes, logger, 'debug');
  const interceptors = [...(options.interceptors ?? [])];
  const streams = createRouterTransport((router) => boundRouter(router, routes, methods, logger), {
    transport: { interceptors },
  });
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const path = methodPath(method);
      const bound = methods.get(path);
      if (!bound) throw new ConnectError(`${path} is not implemented`, Code.Unimplemented);
      const message = '$typeName' in input ? (input as Message) : create(method.input as DescMessage, input);
      const bounds = { signal: signal ?? undefined, timeoutMs: clientTimeoutMs(timeoutMs) };
      const context = new UnaryContext(bound.method, path, header, bounds.timeoutMs, values);
      const output = await withinBounds(bounds, context, () =>
        interceptors.length === 0
          ? bound.invoke(message, context, requestIdOf(header))
          : invokeIntercepted(interceptors, bound, message, context),
      ).catch((err: unknown) => {
        throw withWrittenHeaders(err, context);
      });
      return directResponse(method, context, output);
    },
    stream: (...args) => streams.stream(...args),
  };
}

/** Runs a bound method inside interceptors, which see and change the context's own headers. */
export async function invokeIntercepted(
  interceptors: readonly Interceptor[],
  bound: BoundMethod,
  message: Message,
  context: UnaryContext,
): Promise<Message> {
  const { url, signal, requestHeader, values } = context;
  const { method } = bound;
  const call = { method, url, signal, header: requestHeader, contextValues: values, message };
  const response = await intercept(interceptors, call, async (request) => {
    const requestId = request.header.get(REQUEST_ID_HEADER) ?? '';
    const output = await bound.invoke(request.message, context, requestId);
    return directResponse(method, context, output);
  });
  return response.message;
}

/** On the wire, the headers and trailers of a refused call are the metadata of its error. */
function withWrittenHeaders(err: unknown, { writtenHeader, writtenTrailer }: UnaryContext): unknown {
  const error = err instanceof ConnectError ? err : internalError();
  for (const headers of [writtenHeader, writtenTrailer])
    headers?.forEach((value, name) => void error.metadata.append(name, value));
  return error;
}

function requestIdOf(header: HeaderSource): string {
  if (header === undefined) return '';
  if (header instanceof Headers || Array.isArray(header)) return new Headers(header).get(REQUEST_ID_HEADER) ?? '';
  return (header as Record<string, string>)[REQUEST_ID_HEADER] ?? '';
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
