import type { IncomingMessage, ServerResponse } from 'node:http';
import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { requestIdOf } from '../../http/request.ts';
import type { Logger } from '../../log/logger.ts';
import { onBehalfOf } from '../../log/request-context.ts';
import { inSpan } from '../../telemetry/tracing.ts';
import { canceled } from '../call.ts';
import { unauthenticated } from '../credentials.ts';
import { bodiesServed, codeName } from '../observe.ts';
import { TRACEPARENT_HEADER } from '../route.ts';
import type { CallCounter } from './call-counter.ts';
import { sendError, sendMessage } from './send-response.ts';
import { elapsedMs, reject } from './unary-method.ts';

/** A route of plain HTTP next to the RPC of a service, for uploads and downloads. */
export interface HttpRoute {
  readonly method: string;
  /** Whole path, or its beginning if this ends in `/`. */
  readonly path: string;
  readonly needsCredential: boolean;
  /**
   * Answers the request within its own time limit. What it throws becomes the error of a unary
   * call, or cuts off a response that has begun.
   *
   * @param isService whether the caller presented the credential
   */
  handle(req: IncomingMessage, res: ServerResponse, requestId: string, isService: boolean): Promise<void>;
}

/**
 * A route for a call with a plain body (`PUT`) and the response of a unary call. Messages in a
 * stream cost twice the CPU, and a stream that was cut off may seem whole.
 *
 * @param route.handle reads the body, which is whole only if the request is `complete` at its end
 */
export function bodyRoute<O extends DescMessage>(route: {
  readonly path: string;
  readonly output: O;
  handle(req: IncomingMessage, requestId: string): Promise<MessageInitShape<O>>;
}): HttpRoute {
  const { path, output, handle } = route;
  return {
    method: 'PUT',
    path,
    needsCredential: true,
    handle: async (req, res, requestId) => sendMessage(res, output, create(output, await handle(req, requestId))),
  };
}

/** A listener for HTTP routes that returns false for other requests. */
export function createHttpHandler(
  routes: readonly HttpRoute[],
  hasCredential: (req: IncomingMessage) => boolean,
  calls: CallCounter,
  logger: Logger,
) {
  const answer = async (route: HttpRoute, req: IncomingMessage, res: ServerResponse, isService: boolean) => {
    const startedAt = performance.now();
    const requestId = requestIdOf(req);
    // Beyond the fixed part of the path there may be a secret.
    const rpc = `${route.method} ${route.path}`;
    const gone = new AbortController();
    res.once('close', () => {
      calls.leave();
      if (!res.writableFinished) gone.abort(canceled());
    });
    // An error without a listener would end the process.
    for (const stream of [req, res]) stream.on('error', () => undefined);
    let code = 'ok';
    try {
      await inSpan(spanOf(route, req), () => onBehalfOf(requestId, () => route.handle(req, res, requestId, isService)));
      if (!res.headersSent && !res.destroyed) throw new Error('The route sent no response');
      if (res.statusCode >= 400) code = String(res.statusCode);
      logger.info({ requestId, rpc, ms: elapsedMs(startedAt) }, 'rpc');
    } catch (err) {
      const error = reject(err, gone.signal, logger, { requestId, rpc, ms: elapsedMs(startedAt) });
      code = codeName(error);
      if (res.headersSent) res.destroy();
      else sendError(res, error);
    }
    bodiesServed.observe((performance.now() - startedAt) / 1_000, rpc, code);
  };
  return (req: IncomingMessage, res: ServerResponse): boolean => {
    const route = routes.length === 0 ? undefined : findRoute(routes, req);
    if (!route) return false;
    // A client of an open route without a credential is not a service with a wrong one.
    const isChecked = route.needsCredential || req.headers.authorization !== undefined;
    const isService = isChecked && hasCredential(req);
    const rejection = route.needsCredential && !isService ? unauthenticated() : calls.enter();
    if (rejection) sendError(res, rejection);
    else void answer(route, req, res, isService);
    return true;
  };
}

function findRoute(routes: readonly HttpRoute[], { method, url = '' }: IncomingMessage): HttpRoute | undefined {
  const path = url.split('?', 1)[0] as string;
  return routes.find(
    (route) => route.method === method && (route.path.endsWith('/') ? path.startsWith(route.path) : path === route.path),
  );
}

/** The `traceparent` of a caller without a credential is only linked. */
function spanOf({ method, path, needsCredential }: HttpRoute, { headers }: IncomingMessage) {
  const traceparent = headers[TRACEPARENT_HEADER] as string | undefined;
  return {
    name: `${method} ${path}`,
    kind: 'server' as const,
    attributes: { 'http.request.method': method, 'http.route': path },
    ...(needsCredential ? { parent: traceparent } : { link: traceparent }),
  };
}
