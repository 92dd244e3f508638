import type { AddressInfo } from 'node:net';
import { ConnectError, type ConnectRouter, type Interceptor } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { boundRequest } from '../http/bound-request.ts';
import type { Logger } from '../logger.ts';
import { bindMethods, internalError, methodPath } from './bound-method.ts';
import { CallCounter } from './call-counter.ts';
import { createCredentialCheck, createRequestGate } from './credentials.ts';
import { listenForGrpc } from './grpc-listener.ts';
import { healthRoute, type ReadinessCheck } from './health.ts';
import { buildHttpServer, type FrontHandler } from './http-listener.ts';
import { createLeanHandler } from './lean-handler.ts';
import { createPlainHandler, type PlainRoute } from './plain-route.ts';
import { reflectionRoutes } from './reflection.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, REQUEST_ID_HEADER, type RpcRoute } from './route.ts';
import { boundRouter } from './router.ts';

/** What a service's server needs. */
export interface RpcServerOptions {
  readonly routes: readonly RpcRoute[];
  /** Answered over HTTP/1.1 in front of everything else. None unless set. */
  readonly plainRoutes?: readonly PlainRoute[];
  readonly logger: Logger;
  /** Credentials accepted from callers; see `createCredentialCheck`. */
  readonly credentials: readonly string[];
  readonly checkReady: ReadinessCheck;
  readonly host: string;
  /** Port for Connect, gRPC-Web and probes over HTTP/1.1; 0 lets the system choose. */
  readonly port: number;
  /** Port for gRPC over cleartext HTTP/2; 0 lets the system choose. */
  readonly grpcPort: number;
  /** Applied in order around each call, whatever its protocol. None unless set. */
  readonly interceptors?: readonly Interceptor[];
  /** Longest time that the body of a request for anything but a plain route may take, in milliseconds. The longest deadline unless set. */
  readonly bodyMsMax?: number;
}

/** A service's server once it listens. */
export interface RpcServer {
  readonly port: number;
  readonly grpcPort: number;
  /**
   * Refuses new connections, lets the unary calls and the plain requests under way end, then ends the streams, and resolves. No call takes longer
   * than the longest deadline, and no stream more than a second after them.
   */
  stop(): Promise<void>;
}

/** How long streams, and answers being written, have to end once no unary call is under way, in milliseconds. */
const STREAM_GRACE_MS = 1_000;

/**
 * Longest time that a request may take to arrive where there are plain routes, in milliseconds. Each has a shorter bound of its own, and so has
 * everything else.
 */
const PLAIN_REQUEST_MS_MAX = 25 * 3_600_000;

/** The longest deadline that connect-node's timer can hold, in milliseconds. Ours, which is shorter, then ends a unary call. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Serves RPC routes (architecture 1): a Fastify server over HTTP/1.1 with the lean handler in front and connect-fastify behind it
 * for Connect JSON and gRPC-Web, and connect-node over cleartext HTTP/2 for gRPC. Health and reflection answer anyone; nothing
 * else answers without a credential.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { logger, host, checkReady, bodyMsMax = DEADLINE_MS_MAX } = options;
  const calls = new CallCounter();
  const methods = bindMethods(options.routes, logger);
  const checkCredential = createCredentialCheck(options.credentials);
  const interceptors = [...(options.interceptors ?? [])];
  const shutdown = new AbortController();
  const shared = {
    routes: openRouter(options, methods, calls),
    interceptors: [logDefects(logger), ...interceptors],
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: TIMER_MS_MAX,
    requestGate: createRequestGate(checkCredential),
    shutdownSignal: shutdown.signal,
  };
  const lean = createLeanHandler({ methods, checkCredential, interceptors, logger, calls });
  const plain = createPlainHandler({ routes: options.plainRoutes ?? [], checkCredential, logger, calls });
  const front: FrontHandler = (req, res) => {
    if (plain(req, res)) return true;
    boundRequest(req, res, bodyMsMax);
    return lean(req, res);
  };
  const requestTimeoutMs = options.plainRoutes ? PLAIN_REQUEST_MS_MAX : DEADLINE_MS_MAX;
  const app = await buildHttpServer(front, { ...shared }, { checkReady, requestTimeoutMs });
  await app.listen({ host, port: options.port });
  const grpc = await listenForGrpc(connectNodeAdapter({ ...shared }), host, options.grpcPort).catch(async (err: unknown) => {
    await app.close();
    throw err;
  });
  const stop = async () => {
    const closed = Promise.all([app.close(), grpc.close()]);
    await calls.idle();
    shutdown.abort();
    const grace = setTimeout(() => {
      app.server.closeAllConnections();
      grpc.destroy();
    }, STREAM_GRACE_MS);
    await closed.finally(() => clearTimeout(grace));
  };
  return { port: (app.server.address() as AddressInfo).port, grpcPort: grpc.port, stop };
}

/** Everything that a server answers: its own routes, health and reflection. */
function openRouter(options: RpcServerOptions, methods: ReturnType<typeof bindMethods>, calls: CallCounter) {
  const { routes, checkReady, logger } = options;
  const health = healthRoute(checkReady, routes);
  const services = [...routes, health].map((route) => route.service);
  return (router: ConnectRouter) => {
    boundRouter(router, routes, methods, logger, calls);
    for (const { service, impl } of [health, ...reflectionRoutes(services)]) router.service(service, impl);
  };
}

/** Logs what an interceptor failed with; connect-node masks it without a word. */
function logDefects(logger: Logger): Interceptor {
  return (next) => async (req) => {
    try {
      return await next(req);
    } catch (err) {
      if (err instanceof ConnectError) throw err;
      const requestId = req.header.get(REQUEST_ID_HEADER) ?? '';
      logger.error({ requestId, rpc: methodPath(req.method).slice(1), err }, 'rpc failed');
      throw internalError();
    }
  };
}
