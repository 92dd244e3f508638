import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { type Code, ConnectError, type ServiceImpl, type Transport } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { onTestFinished } from 'vitest';
import { createServiceTransport } from '../rpc/client/service-transport.ts';
import { MESSAGE_BYTES_MAX, type RpcRoute } from '../rpc/route.ts';
import { createCallCounter } from '../rpc/server/call-counter.ts';
import { type RpcServerOptions, startRpcServer } from '../rpc/server/server.ts';
import { bindMethods, registerMethods } from '../rpc/server/unary-method.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { memoryLogger } from './memory-logger.ts';

/** The credential that the test servers take. */
export const CREDENTIAL = 'test-credential';
export const AUTHORIZATION = `Bearer ${CREDENTIAL}`;

/** The code of the error of a call, or `answered`. */
export const codeOf = (call: Promise<unknown>): Promise<Code | 'answered'> =>
  call.then(
    () => 'answered',
    (err: unknown) => ConnectError.from(err).code,
  );

/** A route with only those methods that a test calls. */
export function testRoute<S extends DescService>(service: S, impl: Partial<ServiceImpl<S>>): RpcRoute {
  return { service, impl: impl as unknown as RpcRoute['impl'] };
}

/** A route whose calls of two methods wait for `release`, and then fail if they were aborted. */
export function heldRoute() {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const hold = async (_req: unknown, { signal }: { signal: AbortSignal }) => {
    signals.push(signal);
    await held;
    return signal.aborted ? Promise.reject(new Error('aborted')) : {};
  };
  const getApplicationSettings = async () => ({});
  const route = testRoute(ApplicationService, { deleteApplication: hold, createApplication: hold, getApplicationSettings });
  return { route, signals, release };
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
  return { lines, stop, port: server.port, url: urlOf(server.port), grpcUrl: urlOf(server.grpcPort) };
}

/** Our client's transport, closed at the end of the test. */
export function openTransport(
  url: string,
  credential = CREDENTIAL,
  tls?: ServiceTls,
  isBatched?: (method: DescMethod) => boolean,
) {
  const transport = createServiceTransport(url, credential, { tls, ...(isBatched && { isBatched }) });
  onTestFinished(() => transport.close());
  return transport satisfies Transport;
}

/** connect-node's own server over HTTP/1.1, with the same handlers. */
export async function startStockServer(routes: readonly RpcRoute[]) {
  const { logger, lines } = memoryLogger();
  const methods = bindMethods(routes, logger);
  const listener = connectNodeAdapter({
    routes: (router) => registerMethods(router, methods, createCallCounter(1_000)),
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
  });
  return { lines, url: await startHttpServer(listener) };
}

/** URL of any HTTP/1.1 server, closed at the end of the test. */
export async function startHttpServer(listener: RequestListener): Promise<string> {
  return (await startNodeServer(listener)).url;
}

/** Any HTTP/1.1 server, prepared before it listens, closed at the end of the test. */
export async function startNodeServer(
  listener: RequestListener,
  prepare: (server: Server) => unknown = () => undefined,
  classes: Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> = {},
) {
  const server = createServer({ requireHostHeader: false, ...classes }, listener);
  prepare(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connections = () => new Promise<number>((resolve) => server.getConnections((_err, count) => resolve(count)));
  /** A client that sends these bytes, closed at the end of the test. */
  const open = async (...writes: string[]) => {
    const client = await openRawClient(port);
    for (const text of writes) client.socket.write(text);
    return client;
  };
  return { port, url: `http://127.0.0.1:${port}`, connections, open };
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
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  onTestFinished(close);
  return { port: (server.address() as AddressInfo).port, close };
}
