import { commonErrors } from '@latchkey/kit/errors';
import { answerTurn } from '@latchkey/kit/http/answer-turn';
import { ChunkedRequest } from '@latchkey/kit/http/chunked-request';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { limitConnections } from '@latchkey/kit/http/connection-limits';
import { trackConnections } from '@latchkey/kit/http/connections';
import { type DrainBounds, drainConnections, lingerOnClose } from '@latchkey/kit/http/drain';
import { LingeringResponse } from '@latchkey/kit/http/lingering-response';
import { coverNodeDefaults, onClientError } from '@latchkey/kit/http/raw-error';
import { findHeadProblem } from '@latchkey/kit/http/request-head';
import { requestIdOf } from '@latchkey/kit/http/request-id';
import { standardHeaders } from '@latchkey/kit/http/standard-headers';
import type { Logger } from '@latchkey/kit/logger';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type GatewayConfig, uploadMsMax } from './config.ts';
import { errors } from './errors.ts';
import type { FilesDataPath } from './files-data-path.ts';
import { boundBody } from './http/body-deadline.ts';
import { isEncoded } from './http/bytes-body.ts';
import { deferContinue } from './http/continue.ts';
import { DOWNLOADS_URL, registerDownloads } from './http/downloads.ts';
import { compileValidator } from './http/error-details.ts';
import { createErrorHandler } from './http/error-handler.ts';
import { parseJsonBody } from './http/json-body.ts';
import { measureRequests } from './http/measured-requests.ts';
import { createNotFoundHandler } from './http/not-found.ts';
import { PROBE_PATHS, registerProbes } from './http/probes.ts';
import { traceRequests } from './http/traced-requests.ts';
import { registerOpenApi } from './openapi.ts';
import type { Gate } from './route/gate.ts';
import { registerRoute } from './route/register.ts';
import type { Route } from './route/route.ts';

/** What the HTTP server is made of. */
export interface ServerOptions {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly gate: Gate;
  readonly routes: readonly Route[];
  readonly filesData: FilesDataPath;
  readonly checkReady: () => Promise<void>;
}

/** Largest JSON body, in bytes (decisions 3). */
const BODY_BYTES_MAX = 64 * 1024;

/** Longest time a client may take to send its headers, and a body that is no upload, in milliseconds. */
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 60_000;
/** Longest time that nothing may come or go on a connection with a request under way, so that answers nobody reads do not stay. */
const SILENCE_TIMEOUT_MS = 30_000;
/** How often Node looks for connections past these times, in milliseconds; it is 30 seconds by default, which made 15 into 45. */
const TIMEOUT_CHECK_INTERVAL_MS = 5_000;

/** Time for the answer to a request whose body came as late as it may, in milliseconds. */
const ANSWER_SLACK_MS = 15_000;

/** Time for what is left of a stop once nothing is under way, in milliseconds. */
const STOP_SLACK_MS = 15_000;

/** How long what the server has accepted may still take when it is closed: no shorter than it may take at any time. */
function drainBounds(config: GatewayConfig): DrainBounds & { readonly underWayMsMax: number } {
  return { underWayMsMax: BODY_TIMEOUT_MS + ANSWER_SLACK_MS, transferMsMax: uploadMsMax(config) };
}

/** Longest time that an ordered stop may take, in milliseconds. */
export function stopMsMax(config: GatewayConfig): number {
  const { underWayMsMax, transferMsMax } = drainBounds(config);
  return config.DRAIN_SECONDS * 1_000 + Math.max(underWayMsMax, transferMsMax) + STOP_SLACK_MS;
}

/** The HTTP server. */
export interface GatewayServer {
  readonly app: FastifyInstance;
  /** Has clients leave the connections that they keep, for `DRAIN_SECONDS`, before the server is closed. */
  drain(): Promise<void>;
}

/** Assembles the HTTP server; it listens later. */
export async function createServer(options: ServerOptions): Promise<GatewayServer> {
  const { config, logger, gate, routes } = options;
  const standard = standardHeaders(config.PUBLIC_URL);
  const app = fastify({
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: config.TRUSTED_PROXIES.length > 0 ? [...config.TRUSTED_PROXIES] : false,
    bodyLimit: BODY_BYTES_MAX,
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
    routerOptions: { maxParamLength: 16_384 },
    clientErrorHandler: (err, socket) => onClientError(err, socket, logger, standard),
    frameworkErrors: (err, request, reply) => {
      reply.header('x-request-id', request.id).headers(standard);
      createErrorHandler(logger)(err, request, reply);
    },
  });
  const trust = trustProxies(config.TRUSTED_PROXIES);
  limitConnections(app.server, { total: config.CONNECTIONS_MAX, perNetwork: config.CONNECTIONS_PER_IP, trust });
  coverNodeDefaults(app.server, standard);
  deferContinue(app.server);
  const open = trackConnections(app.server);
  lingerOnClose(app, open, drainBounds(config));
  app.setValidatorCompiler(compileValidator);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async ({ raw }: FastifyRequest, body: Buffer) => {
    if (isEncoded(raw)) throw errors.encoding_unsupported();
    return parseJsonBody(body);
  });
  app.setErrorHandler(createErrorHandler(logger));
  measureRequests(app, open);
  traceRequests(app);
  const refuseUnrouted = createNotFoundHandler([...routes, ...OWN_PATHS]);
  addHooks(app, options, refuseUnrouted);
  await registerOpenApi(app, routes);
  for (const route of routes) registerRoute(app, gate, route);
  registerDownloads(app, options.filesData, logger);
  app.setNotFoundHandler(refuseUnrouted);
  registerProbes(app, options.checkReady, logger);
  return { app, drain: () => drainConnections(app.server, open, config.DRAIN_SECONDS * 1_000) };
}

const OWN_PATHS = ['/healthz', '/readyz', '/openapi.json', '/docs', DOWNLOADS_URL].map((url) => ({
  method: 'GET' as const,
  url,
}));

/** What happens to every request, whatever it asks for. */
function addHooks(
  app: FastifyInstance,
  { config, logger, gate, routes }: ServerOptions,
  refuseUnrouted: (request: FastifyRequest, reply: FastifyReply) => never,
): void {
  const standard = standardHeaders(config.PUBLIC_URL);
  const gated = new Set(routes.map((route) => route.url));
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).headers(standard);
    if (!request.routeOptions.config?.takesBytes) boundBody(request.raw, reply.raw, BODY_TIMEOUT_MS, standard);
    const problem = findHeadProblem(request.raw);
    if (problem) throw commonErrors.request_malformed().withDetails(problem);
    const url = request.routeOptions.url;
    if (url === undefined || !(gated.has(url) || PROBE_PATHS.has(url))) await gate.count(request, reply);
    // Before the body is read: where there is no route, nobody says what a body may be.
    if (request.is404) refuseUnrouted(request, reply);
    if (url === DOWNLOADS_URL && !(await answerTurn(reply.raw))) reply.hijack();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { method } = request;
    const facts = { requestId: request.id, method, route: request.routeOptions.url, status: reply.statusCode };
    logger.info({ ...facts, ms: Math.round(reply.elapsedTime * 1000) / 1000 }, 'request');
    done();
  });
}
