import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { ReadinessCheck } from '../../http/cached-readiness.ts';
import { ensureRequestId, limitBodyTime } from '../../http/request.ts';
import type { Logger } from '../../log/logger.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { listenForGrpc } from '../grpc/grpc-listener.ts';
import { healthRoute } from '../grpc/health.ts';
import { reflectionRoute } from '../grpc/reflection.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, type RpcRoute } from '../route.ts';
import { bindMethods, registerMethods } from './bound-method.ts';
import { CallCounter } from './call-counter.ts';
import { createCredentialGate, OPEN_MESSAGE_BYTES_MAX } from './credential-gate.ts';
import { buildHttpServer } from './http-listener.ts';
import { createHttpHandler, type HttpRoute } from './http-route.ts';
import { SERVER_LIMITS, type ServerLimits } from './limits.ts';
import { createRejectionLog } from './rejection-log.ts';
import { rejectUnknownMethod } from './response.ts';
import { createUnaryHandler } from './unary-handler.ts';

/** What a service's server needs. */
export interface RpcServerOptions {
  readonly routes: readonly RpcRoute[];
  /** Served over HTTP/1.1 beside RPC. None unless set. */
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
  /** {@link SERVER_LIMITS} unless set. */
  readonly limits?: Partial<ServerLimits>;
}

/** A service's server while it listens. */
export interface RpcServer {
  readonly port: number;
  readonly grpcPort: number;
  /**
   * Refuses new connections, lets calls and HTTP requests under way end, then ends the streams. No call takes
   * longer than the longest deadline, and streams at most a second more.
   */
  stop(): Promise<void>;
}

/** Time for streams and unread responses to end after the last call, in milliseconds. */
const STREAM_GRACE_MS = 1_000;

/** Time without a call before streams end. Connections open at a stop linger 250 ms and may bring another call. */
const QUIET_MS = 500;

/** Longest time for a request to arrive beside HTTP routes, which have shorter bounds of their own, in milliseconds. */
const HTTP_REQUEST_MS_MAX = 25 * 3_600_000;

/** Longest deadline that connect-node's timer can hold. Our own is shorter and ends unary calls. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Serves RPC routes (architecture 1): a Fastify server over HTTP/1.1 with the unary handler in front and
 * connect-fastify behind it for Connect JSON and gRPC-Web, and connect-node over HTTP/2 for gRPC.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { logger, host, tls, routes, checkReady, httpRoutes } = options;
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const calls = new CallCounter(limits.calls);
  const methods = bindMethods(routes, logger);
  const health = healthRoute(checkReady, routes);
  const reflection = reflectionRoute([...routes, health].map(({ service }) => service));
  const services = [...routes, health, reflection].map(({ service }) => service);
  const gate = createCredentialGate({ credentials: options.credentials, services, logger, openCallMs: limits.openCallMs });
  const logRejectedPeer = createRejectionLog(logger, 'connections without TLS that can be trusted are refused');
  const shutdown = new AbortController();
  const connect = {
    routes: (router: ConnectRouter) => {
      registerMethods(router, methods, calls);
      for (const { service, impl } of [health, reflection]) {
        router.service(service, impl, { readMaxBytes: OPEN_MESSAGE_BYTES_MAX });
      }
    },
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: TIMER_MS_MAX,
    shutdownSignal: shutdown.signal,
  };
  const unary = createUnaryHandler({ methods, logger, calls });
  const http = createHttpHandler({ routes: httpRoutes ?? [], hasCredential: gate.hasCredential, logger, calls });
  const front = (req: IncomingMessage, res: ServerResponse) => {
    ensureRequestId(req);
    if (http(req, res)) return true;
    limitBodyTime(req, res, limits.bodyMs);
    return !gate.admit(req, res) || unary(req, res);
  };
  const requestTimeoutMs = httpRoutes ? HTTP_REQUEST_MS_MAX : DEADLINE_MS_MAX;
  const app = await buildHttpServer({ front, connect, checkReady, requestTimeoutMs, limits, tls, logRejectedPeer });
  await app.listen({ host, port: options.port });
  const adapter = connectNodeAdapter({
    ...connect,
    fallback: (req, res) => rejectUnknownMethod(req, res as Http2ServerResponse),
  });
  const grpc = await listenForGrpc(
    (req, res) => {
      ensureRequestId(req);
      if (gate.admit(req, res)) adapter(req, res);
    },
    { host, port: options.grpcPort, tls, limits, logRejectedPeer },
  ).catch(async (err: unknown) => {
    await app.close();
    throw err;
  });
  const stop = async () => {
    const closed = Promise.all([app.close(), grpc.close()]);
    await Promise.race([closed, calls.quiet(QUIET_MS)]);
    shutdown.abort();
    const grace = setTimeout(() => {
      app.server.closeAllConnections();
      grpc.destroy();
    }, STREAM_GRACE_MS);
    await closed.finally(() => clearTimeout(grace));
  };
  return { port: (app.server.address() as AddressInfo).port, grpcPort: grpc.port, stop };
}
