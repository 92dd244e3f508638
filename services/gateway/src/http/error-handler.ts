import { commonErrors, type DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import { rateLimitHeaders } from '@latchkey/kit/http/rate-limit-headers';
import { errorEnvelope } from '@latchkey/kit/http/response';
import type { Logger } from '@latchkey/kit/log/logger';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Route } from '../routing/route.ts';
import { formTypeUnsupported, oauthError, oauthStatus } from './oauth.ts';
import { bytesTypeUnsupported } from './request-body.ts';
import { locateDetail } from './validation.ts';

const RETRY_AFTER_UNAVAILABLE_S = '2';

/** Sends the envelope of any error. Unexpected errors are logged and masked. */
export function createErrorHandler(logger: Logger) {
  return (err: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = toDomainError(err, request);
    if (!known) logger.error({ err, requestId: request.id, route: request.routeOptions.url }, 'request failed');
    return sendError(reply, known ?? errors.internal_error(), request);
  };
}

function sendError(reply: FastifyReply, err: DomainError, { id, routeOptions }: FastifyRequest): FastifyReply {
  if (err.kind === 'rate_limited') reply.headers(rateLimitHeaders(err));
  // Required by RFC 9110, 11.6.1.
  if (err.kind === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="latchkey"');
  if (err.reason === 'idempotency_in_progress' || err.kind === 'locked') reply.header('retry-after', '1');
  if (err.httpStatus === 503) reply.header('retry-after', RETRY_AFTER_UNAVAILABLE_S);
  const isOAuth = routeOptions.config?.isOAuth;
  return reply
    .code(isOAuth ? oauthStatus(err) : err.httpStatus)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(isOAuth ? oauthError(err) : errorEnvelope(err, id)));
}

function toDomainError(err: unknown, request: FastifyRequest): DomainError | undefined {
  const known = fromConnectError(err);
  if (!known) return fromFastifyError(err as FastifyError, request);
  if (known.details.length === 0) return known;
  return known.withDetails(...known.details.map((detail) => locateDetail(detail, request)));
}

const WRONG_LENGTH = { path: 'header.content-length', message: 'must be the length of the body' };

function fromFastifyError(err: FastifyError, { routeOptions }: FastifyRequest): DomainError | undefined {
  if (err.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return errors.body_too_large();
  if (err.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' && routeOptions.config?.isOAuth) return formTypeUnsupported();
  if (err.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return routeOptions.config?.takesBytes ? bytesTypeUnsupported() : errors.media_type_unsupported();
  // Errors of other libraries have codes that are numbers.
  if (String(err.code).startsWith('FST_ERR_CTP_')) return errors.request_invalid().withDetails(WRONG_LENGTH);
  if (err.code === 'FST_ERR_MAX_PARAM_LENGTH') return errors.route_not_found();
  if (err.code === 'ECONNRESET' || err.code === 'ERR_STREAM_PREMATURE_CLOSE') return commonErrors.request_malformed();
  return fromStatus(err.statusCode);
}

/** Errors of static files, such as a path outside of the folder or an invalid range. */
function fromStatus(status = 500): DomainError | undefined {
  if (status === 403 || status === 404) return errors.route_not_found();
  return status >= 400 && status < 500 ? commonErrors.request_malformed() : undefined;
}

/** Rejects requests without a route: 405 with `Allow` for a known path, else 404. */
export function createNotFoundHandler(routes: readonly Pick<Route, 'method' | 'url'>[]) {
  const methodsByPath = new Map<string, Set<string>>();
  for (const { method, url } of routes) {
    const methods = methodsByPath.get(url) ?? new Set();
    methodsByPath.set(url, methods.add(method));
    if (method === 'GET') methods.add('HEAD');
  }
  const patterns = [...methodsByPath].map(([url, methods]) => {
    return [new RegExp(`^${url.replace(/:[a-zA-Z]+/g, '[^/]+')}$`), [...methods].join(', ')] as const;
  });
  return (request: FastifyRequest, reply: FastifyReply): never => {
    const path = pathOf(request.url);
    const known = patterns.find(([pattern]) => pattern.test(path));
    if (!known) throw errors.route_not_found();
    reply.header('allow', known[1]);
    throw errors.method_not_allowed().withDetails({ path: 'request', message: `must use the method ${known[1]}` });
  };
}

/** The path as the router reads it: targets may be absolute (RFC 9112, 3.2.2) and escaped. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split(/[?#]/, 1)[0] as string;
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
