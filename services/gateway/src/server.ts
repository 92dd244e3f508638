import type { IncomingMessage, Server } from 'node:http';
import { JSON_BODY_KIB_MAX } from '@latchkey/contract/limits';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { ChunkedRequest } from '@latchkey/kit/http/chunked-request';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { limitConnections } from '@latchkey/kit/http/concurrency-limit';
import { trackConnections } from '@latchkey/kit/http/connections';
import { type DrainBounds, drainConnections, lingerOnClose } from '@latchkey/kit/http/drain';
import { LingeringResponse } from '@latchkey/kit/http/lingering-close';
import { cachedReadiness, registerProbes } from '@latchkey/kit/http/probes';
import { coverNodeDefaults, onClientError } from '@latchkey/kit/http/raw-error';
import { findHeadProblem, requestIdOf } from '@latchkey/kit/http/request';
import { standardHeaders, waitForTurn } from '@latchkey/kit/http/response';
import type { Logger } from '@latchkey/kit/log/logger';
import { type FastifyHttpOptions, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Clients } from './clients.ts';
import { type GatewayConfig, uploadMsMax } from './config.ts';
import { createDashboard } from './dashboard/dashboard.ts';
import { errors } from './errors.ts';
import type { FilesDataPath } from './files-data-path.ts';
import { DOWNLOADS_URL, registerDownloads } from './http/downloads.ts';
import { createErrorHandler, createNotFoundHandler } from './http/error-handler.ts';
import { hashBody } from './http/idempotency.ts';
import { parseJsonBody } from './http/json-body.ts';
import { boundBody, deferContinue, isEncoded } from './http/request-body.ts';
import { logRequests, observeRequests } from './http/request-telemetry.ts';
import { closeSlowReaders } from './http/slow-readers.ts';
import { compileValidator } from './http/validation.ts';
import { registerOpenApi } from './openapi/document.ts';
import { provideRequestContext } from './request-context.ts';
import type { Gate } from './routing/gate.ts';
import { createLargeResponses } from './routing/large-responses.ts';
import { registerRoute } from './routing/register.ts';
import type { Route } from './routing/route.ts';

export interface ServerOptions {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly gate: Gate;
  readonly clients: Clients;
  readonly routes: readonly Route[];
  readonly filesData: FilesDataPath;
  readonly connectionsMax?: number | undefined;
  readonly checkReady: () => Promise<void>;
}

/** Open connections at most: each may hold a body. */
const CONNECTIONS_MAX = 10_000;

/** Longest time for the headers of a request, and for a body except uploads, in milliseconds. */
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 60_000;
/** Longest silence of a connection during a request, in milliseconds: ends unread responses. */
const SILENCE_TIMEOUT_MS = 30_000;
/** Interval of Node's checks of these, in milliseconds. The default of 30 s would make 15 s 45. */
const TIMEOUT_CHECK_INTERVAL_MS = 5_000;

/** Time for the response to a request whose body arrived just in time, in milliseconds. */
const RESPONSE_SLACK_MS = 15_000;

/** Time for the rest of a stop after the last request, in milliseconds. */
const STOP_SLACK_MS = 15_000;

/** Longest time of accepted requests when the server closes: as long as at any other time. */
function drainBounds(config: GatewayConfig): DrainBounds & { readonly underWayMsMax: number } {
  return { underWayMsMax: BODY_TIMEOUT_MS + RESPONSE_SLACK_MS, transferMsMax: uploadMsMax(config) };
}

export function stopMsMax(config: GatewayConfig): number {
  const { underWayMsMax, transferMsMax } = drainBounds(config);
  return config.DRAIN_SECONDS * 1_000 + Math.max(underWayMsMax, transferMsMax) + STOP_SLACK_MS;
}

export async function createServer(options: ServerOptions) {
  const { config, logger, gate, clients, routes, connectionsMax = CONNECTIONS_MAX } = options;
  const standard = standardHeaders(config.PUBLIC_URL);
  const app = fastify(serverOptions(config, logger));
  const trust = trustProxies(config.TRUSTED_PROXIES);
  limitConnections(app.server, { total: connectionsMax, perNetwork: config.CONNECTIONS_PER_IP, trust });
  coverNodeDefaults(app.server, standard);
  deferContinue(app.server);
  const open = trackConnections(app.server);
  closeSlowReaders(app.server, open, logger);
  lingerOnClose(app, open, drainBounds(config));
  app.setValidatorCompiler(compileValidator);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    if (isEncoded(request.raw)) throw errors.encoding_unsupported();
    hashBody(request, body);
    return parseJsonBody(body);
  });
  app.setErrorHandler(createErrorHandler(logger));
  observeRequests(app, open);
  provideRequestContext(app);
  const dashboard = createDashboard(config, logger);
  const rejectUnrouted = createNotFoundHandler([...routes, ...OWN_PATHS, ...(dashboard ? [HOME] : [])]);
  addHooks(app, options, (request, reply) => {
    if (!dashboard?.isPageRequest(request)) rejectUnrouted(request, reply);
  });
  logRequests(app, logger);
  await registerOpenApi(app, routes);
  const checks = { gate, clients, waitForLargeResponse: createLargeResponses() };
  for (const route of routes) registerRoute(app, checks, route);
  registerDownloads(app, options.filesData);
  await dashboard?.register(app);
  // Also for files that are gone.
  app.setNotFoundHandler((request, reply) => {
    return dashboard?.isPageRequest(request) ? dashboard.sendPage(request, reply) : rejectUnrouted(request, reply);
  });
  registerProbes(app, cachedReadiness(options.checkReady, logger));
  // Asks clients to leave their connections before the server closes.
  return { app, drain: () => drainConnections(app.server, open, config.DRAIN_SECONDS * 1_000) };
}

function serverOptions(config: GatewayConfig, logger: Logger): FastifyHttpOptions<Server> {
  const standard = standardHeaders(config.PUBLIC_URL);
  return {
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: config.TRUSTED_PROXIES.length > 0 ? [...config.TRUSTED_PROXIES] : false,
    bodyLimit: JSON_BODY_KIB_MAX * 1024,
    requestTimeout: HEADERS_TIMEOUT_MS + uploadMsMax(config),
    connectionTimeout: SILENCE_TIMEOUT_MS,
    keepAliveTimeout: 65_000,
    return503OnClosing: false,
    http: {
      IncomingMessage: ChunkedRequest,
      ServerResponse: LingeringResponse,
      requireHostHeader: false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    },
    rewriteUrl: overrideMethod,
    routerOptions: { maxParamLength: 16_384 },
    clientErrorHandler: (err, socket) => onClientError(err, socket, logger, standard),
    frameworkErrors: (err, request, reply) => {
      reply.header('x-request-id', request.id).headers(standard);
      createErrorHandler(logger)(err, request, reply);
    },
  };
}

/**
 * Honours `X-HTTP-Method-Override` of tus 1.0.0 for clients that can only send POST, before the
 * request is routed and checked as one of that method.
 */
function overrideMethod(req: { method?: string | undefined; url?: string | undefined; headers: IncomingMessage['headers'] }) {
  const method = String(req.headers['x-http-method-override']).toUpperCase();
  const isOverridden = req.method === 'POST' && (method === 'PATCH' || method === 'DELETE');
  if (isOverridden && req.url?.startsWith('/api/v1/panel/uploads/')) req.method = method;
  return req.url ?? '';
}

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const HOME = { method: 'GET', url: '/' } as const;
const OWN_PATHS = [...PROBES, '/openapi.json', '/docs', DOWNLOADS_URL].map((url) => ({ method: 'GET' as const, url }));

function addHooks(
  app: FastifyInstance,
  { config, gate, routes }: ServerOptions,
  checkRouted: (request: FastifyRequest, reply: FastifyReply) => void,
): void {
  const standard = standardHeaders(config.PUBLIC_URL);
  const gated = new Set(routes.map((route) => route.url));
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).headers(standard);
    if (!request.routeOptions.config?.takesBytes) boundBody(request.raw, reply.raw, BODY_TIMEOUT_MS, standard);
    const problem = findHeadProblem(request.raw);
    if (problem) throw commonErrors.request_malformed().withDetails(problem);
    const url = request.routeOptions.url;
    // The router also takes a path without its last segment.
    const isCut = url !== undefined && gated.has(url) && Object.values(request.params as object).includes('');
    if (isCut || url === undefined || !(gated.has(url) || PROBES.has(url))) await gate.count(reply);
    if (isCut) throw errors.route_not_found();
    // Before the body is read: without a route, no schema bounds it.
    if (request.is404) checkRouted(request, reply);
    if (url === DOWNLOADS_URL && !(await waitForTurn(reply.raw))) reply.hijack();
  });
}
