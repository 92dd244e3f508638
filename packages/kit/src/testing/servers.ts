import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { DescService } from '@bufbuild/protobuf';
import type { Interceptor, ServiceImpl } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { onTestFinished } from 'vitest';
import { bindMethods } from '../rpc/bound-method.ts';
import { MESSAGE_BYTES_MAX, type RpcRoute } from '../rpc/route.ts';
import { boundRouter } from '../rpc/router.ts';
import { type RpcServerOptions, startRpcServer } from '../rpc/server.ts';
import { memoryLogger } from './memory-logger.ts';

/** The credential that the test servers take. */
export const CREDENTIAL = 'test-credential';

/** A route with only those methods that a test calls. */
export function testRoute<S extends DescService>(service: S, impl: Partial<ServiceImpl<S>>): RpcRoute {
  return { service, impl: impl as unknown as RpcRoute['impl'] };
}

/** Our own server on ephemeral ports, stopped at the end of the test. */
export async function startTestServer(routes: readonly RpcRoute[], overrides: Partial<RpcServerOptions> = {}) {
  const { logger, lines } = memoryLogger();
  const server = await startRpcServer({
    routes,
    logger,
    credentials: [CREDENTIAL],
    checkReady: async () => undefined,
    host: '127.0.0.1',
    port: 0,
    grpcPort: 0,
    ...overrides,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= server.stop();
    return stopped;
  };
  onTestFinished(stop);
  const scheme = overrides.tls ? 'https' : 'http';
  const urlOf = (port: number) => `${scheme}://127.0.0.1:${port}`;
  return { lines, stop, logger, url: urlOf(server.port), grpcUrl: urlOf(server.grpcPort), probePort: server.probePort };
}

/** connect-node's own server over HTTP/1.1, with the same handlers, closed at the end of the test. */
export async function startStockServer(routes: readonly RpcRoute[], interceptors: Interceptor[] = []) {
  const { logger, lines } = memoryLogger();
  const methods = bindMethods(routes, logger);
  const listener = connectNodeAdapter({
    routes: (router) => boundRouter(router, routes, methods, logger),
    interceptors,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
  });
  return { lines, url: await startHttpServer(listener) };
}

/** Any HTTP/1.1 server, closed at the end of the test. */
export async function startHttpServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that does with its connections as it likes, closed at the end of the test. */
export async function startTcpServer(onConnection: (socket: Socket) => void, port = 0) {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  onTestFinished(close);
  return { port: (server.address() as AddressInfo).port, close };
}
