import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { FastifyInstance } from 'fastify';
import type { ReadinessCheck } from '../../http/probes.ts';
import { ensureRequestId, limitBodyTime } from '../../http/request.ts';
import type { Logger } from '../../log/logger.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { DEADLINES_MS } from '../deadlines.ts';
import { type GrpcListener, listenForGrpc } from '../grpc/grpc-listener.ts';
import { healthRoute } from '../grpc/health.ts';
import { reflectionRoute } from '../grpc/reflection.ts';
import { MESSAGE_BYTES_MAX, type RpcRoute } from '../route.ts';
import { type CallCounter, createCallCounter } from './call-counter.ts';
import { createCredentialGate, OPEN_MESSAGE_BYTES_MAX } from './credential-gate.ts';
import { buildHttpServer } from './http-listener.ts';
import { createHttpHandler, type HttpRoute } from './http-route.ts';
import { SERVER_LIMITS, type ServerLimits } from './limits.ts';
import { markParsed, rejectMalformed } from './malformed-request.ts';
import { createRejectionLog } from './rejection-log.ts';
import { rejectUnknownMethod } from './send-response.ts';
import { createUnaryHandler } from './unary-handler.ts';
import { bindMethods, registerMethods } from './unary-method.ts';

export interface RpcServerOptions {
  readonly routes: readonly RpcRoute[];
  readonly httpRoutes?: readonly HttpRoute[];
  readonly logger: Logger;
  /** Credentials accepted from callers; see `createCredentialCheck`. */
  readonly credentials: readonly string[];
  readonly checkReady: ReadinessCheck;
  readonly host: string;
  /** Port for Connect, gRPC-Web and probes over HTTP/1.1; 0 lets the system choose. */
  readonly port: number;
  /** Port for gRPC over HTTP/2; 0 lets the system choose. */
  readonly grpcPort: number;
  /** Mutual TLS on both ports. Cleartext unless set. */
  readonly tls?: ServiceTls | undefined;
  readonly limits?: Partial<ServerLimits>;
}

export type RpcServer = Awaited<ReturnType<typeof startRpcServer>>;

/** Time for streams and unread responses to end after the last call, in milliseconds. */
const STREAM_GRACE_MS = 1_000;

/** Time without a call before streams end: open connections linger 250 ms and may bring a call. */
const QUIET_MS = 500;

/** Longest time for a request to arrive. HTTP routes have shorter limits. */
const HTTP_REQUEST_MS_MAX = 25 * 3_600_000;

/** Longest deadline that connect-node's timer can hold. Our own is shorter and ends unary calls. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Serves RPC routes: a Fastify server over HTTP/1.1 with the unary handler in front and
 * connect-fastify behind it for Connect JSON and gRPC-Web, and connect-node over HTTP/2 for gRPC.
 */
export async function startRpcServer(options: RpcServerOptions) {
  const { routes, httpRoutes = [], logger, credentials, checkReady, host, tls } = options;
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const calls = createCallCounter(limits.calls);
  const methods = bindMethods(routes, logger);
  const health = healthRoute(checkReady, routes);
  const reflection = reflectionRoute([...routes, health]);
  const gate = createCredentialGate(credentials, [...routes, health, reflection], logger, limits.openCallMs);
  const logRejectedPeer = createRejectionLog(logger, 'connections without TLS that can be trusted are rejected');
  const streams = new AbortController();
  const connect = {
    routes: (router: ConnectRouter) => {
      registerMethods(router, methods, calls);
      const readMaxBytes = OPEN_MESSAGE_BYTES_MAX;
      for (const { service, impl } of [health, reflection]) router.service(service, impl, { readMaxBytes });
      rejectMalformed(router);
    },
    interceptors: [markParsed],
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: TIMER_MS_MAX,
    shutdownSignal: streams.signal,
  };
  const answerUnary = createUnaryHandler(methods, calls, logger);
  const answerHttp = createHttpHandler(httpRoutes, gate.hasCredential, calls, logger);
  const front = (req: IncomingMessage, res: ServerResponse) => {
    ensureRequestId(req);
    if (answerHttp(req, res)) return true;
    limitBodyTime(req, res, limits.bodyMs);
    return !gate.authorize(req, res) || answerUnary(req, res);
  };
  const requestTimeoutMs = options.httpRoutes ? HTTP_REQUEST_MS_MAX : DEADLINES_MS.longest;
  const app = await buildHttpServer({ front, connect, checkReady, requestTimeoutMs, limits, tls, logRejectedPeer });
  await app.listen({ host, port: options.port });
  const adapter = connectNodeAdapter({
    ...connect,
    fallback: (req, res) => rejectUnknownMethod(req, res as Http2ServerResponse),
  });
  const answerGrpc: Parameters<typeof listenForGrpc>[0] = (req, res) => {
    ensureRequestId(req);
    if (gate.authorize(req, res)) adapter(req, res);
  };
  const grpcOptions = { host, port: options.grpcPort, tls, limits, logRejectedPeer };
  const grpc = await listenForGrpc(answerGrpc, grpcOptions).catch((err: unknown) => app.close().then(() => Promise.reject(err)));
  const stop = () => stopServers(app, grpc, calls, streams);
  return { port: (app.server.address() as AddressInfo).port, grpcPort: grpc.port, stop };
}

/**
 * Refuses new connections, lets calls and HTTP requests under way end, then ends the streams, at
 * most a second after the longest deadline.
 */
async function stopServers(app: FastifyInstance, grpc: GrpcListener, calls: CallCounter, streams: AbortController) {
  const closed = Promise.all([app.close(), grpc.close()]);
  await Promise.race([closed, calls.quiet(QUIET_MS)]);
  streams.abort();
  const grace = setTimeout(() => {
    app.server.closeAllConnections();
    grpc.destroy();
  }, STREAM_GRACE_MS);
  await closed.finally(() => clearTimeout(grace));
}
