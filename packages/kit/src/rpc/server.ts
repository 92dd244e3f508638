import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { ConnectRouter, Interceptor } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { fastify } from 'fastify';
import type { Logger } from '../logger.ts';
import { bindMethods } from './bound-method.ts';
import { createCredentialCheck, createRequestGate } from './credentials.ts';
import { healthRoute, type ReadinessCheck } from './health.ts';
import { createLeanHandler } from './lean-handler.ts';
import { reflectionRoutes } from './reflection.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, type RpcRoute } from './route.ts';
import { boundRouter } from './router.ts';

/** What a service's server needs. */
export interface RpcServerOptions {
  readonly routes: readonly RpcRoute[];
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
}

/** A service's server once it listens. */
export interface RpcServer {
  readonly port: number;
  readonly grpcPort: number;
  /** Refuses new connections, lets the calls under way end, and closes. */
  stop(): Promise<void>;
}

/**
 * Serves RPC routes (architecture 1): a Fastify server over HTTP/1.1 with the lean handler in front and connect-fastify behind it
 * for Connect JSON and gRPC-Web, and connect-node over cleartext HTTP/2 for gRPC. Health and reflection answer anyone; nothing
 * else answers without a credential.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const methods = bindMethods(options.routes, options.logger);
  const checkCredential = createCredentialCheck(options.credentials);
  const interceptors = [...(options.interceptors ?? [])];
  const lean = createLeanHandler({ methods, checkCredential, interceptors });
  const services = options.routes.map((route) => route.service);
  const health = healthRoute(options.checkReady, options.routes);
  const routes = (router: ConnectRouter) => {
    boundRouter(router, options.routes, methods);
    for (const { service, impl } of [health, ...reflectionRoutes([...services, health.service])]) router.service(service, impl);
  };
  const shutdown = new AbortController();
  const shared = {
    routes,
    interceptors,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: DEADLINE_MS_MAX,
    requestGate: createRequestGate(checkCredential),
    shutdownSignal: shutdown.signal,
  };
  const app = fastify({
    requestTimeout: DEADLINE_MS_MAX,
    keepAliveTimeout: 65_000,
    return503OnClosing: false,
    serverFactory: (handler) => createHttpServer((req, res) => void (lean(req, res) || handler(req, res))),
  });
  await app.register(fastifyConnectPlugin, shared);
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', async (_req, reply) => {
    const ready = await options.checkReady().then(
      () => true,
      () => false,
    );
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready' });
  });
  const grpc = createHttp2Server(connectNodeAdapter(shared));
  const closeGrpc = trackSessions(grpc);
  await app.listen({ host: options.host, port: options.port });
  await listen(grpc, options.host, options.grpcPort).catch(async (err: unknown) => {
    await app.close();
    throw err;
  });
  return {
    port: (app.server.address() as AddressInfo).port,
    grpcPort: (grpc.address() as AddressInfo).port,
    async stop() {
      shutdown.abort();
      await Promise.all([app.close(), closeGrpc()]);
    },
  };
}

function listen(server: Http2Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Node does not end HTTP/2 sessions when their server closes, so an idle client would hold it open for ever. */
function trackSessions(server: Http2Server): () => Promise<void> {
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const session of sessions) session.close();
    });
}
