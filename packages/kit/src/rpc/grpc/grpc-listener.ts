import { once } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { limitConnections } from '../../http/concurrency-limit.ts';
import { secureServer, serverTlsOptions, whenUntrusted } from '../../tls/server-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { methodPath } from '../route.ts';
import type { ServerLimits } from '../server/limits.ts';
import type { LogRejection } from '../server/rejection-log.ts';

export type GrpcListener = Awaited<ReturnType<typeof listenForGrpc>>;

type Handler = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => void;

/** Concurrent calls of one session; a client queues further ones. */
const STREAMS_PER_SESSION = 256;

/** Time for a client to end its side of an idle session, in milliseconds. Node has no limit. */
const CLOSE_MS_MAX = 1_000;

/** A watch has no time limit: its client ends it. */
const WATCH = methodPath(Health.method.watch);

/** gRPC requires all but printable ASCII to be encoded, and the percent sign. */
const ENCODED = /[^\x20-\x24\x26-\x7e]+/gu;

export async function listenForGrpc(
  handler: Handler,
  options: { host: string; port: number; limits: ServerLimits; tls: ServiceTls | undefined; logRejectedPeer: LogRejection },
) {
  const { host, port, tls, limits, logRejectedPeer } = options;
  const onRequest: Handler = (req, res) => {
    encodeGrpcMessage(res);
    handler(req, res);
  };
  const settings = { maxConcurrentStreams: STREAMS_PER_SESSION };
  const secure = tls && { ...serverTlsOptions(tls), settings, ALPNProtocols: ['h2'], allowHTTP1: false };
  const server = secure ? http2.createSecureServer(secure, onRequest) : http2.createServer({ settings }, onRequest);
  if (tls) secureServer(server as http2.Http2SecureServer, tls, logRejectedPeer);
  limitConnections(server, { total: limits.connections, perNetwork: limits.connectionsPerIp });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session: http2.ServerHttp2Session) => {
    session.on('error', () => session.destroy());
    session.once('connect', (_session, socket) => {
      limitSession(session, socket, limits);
      // Calls under way may end; watches are cut off.
      if (tls) whenUntrusted(tls, socket as TLSSocket, () => closeSession(session, socket, limits.callMs));
    });
  });
  await once(server.listen(port, host), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    /** Refuses new connections and calls; resolves once the calls under way have ended. */
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
    destroy(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * Encodes error messages as gRPC specifies
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses). connect-node also
 * encodes commas and colons, which grpc-js does not decode: its users would read `%2C`.
 */
function encodeGrpcMessage(res: http2.Http2ServerResponse): void {
  const addTrailers = res.addTrailers.bind(res);
  res.addTrailers = (trailers: OutgoingHttpHeaders) => {
    const message = trailers['grpc-message'];
    if (typeof message !== 'string') return addTrailers(trailers);
    addTrailers({ ...trailers, 'grpc-message': decodeURIComponent(message).replace(ENCODED, encodeURIComponent) });
  };
}

/** Limits the time for the preface, for each call, and without a call. */
function limitSession(session: http2.ServerHttp2Session, socket: Socket, { headMs, callMs, idleMs }: ServerLimits): void {
  let openCalls = 0;
  session.on('stream', (stream, headers) => {
    openCalls += 1;
    const isWatch = headers[http2.constants.HTTP2_HEADER_PATH] === WATCH;
    // Ends a call whose body does not come, or whose response is not read.
    const timer = isWatch ? undefined : setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), callMs);
    stream.once('close', () => {
      openCalls -= 1;
      clearTimeout(timer);
    });
  });
  session.setTimeout(idleMs);
  session.on('timeout', () => {
    if (openCalls === 0) closeSession(session, socket, CLOSE_MS_MAX);
  });
  const preface = setTimeout(() => socket.destroy(), headMs);
  session.once('remoteSettings', () => clearTimeout(preface)).once('close', () => clearTimeout(preface));
}

/** Closes a session once its calls have ended, or after a time in milliseconds. */
function closeSession(session: http2.ServerHttp2Session, socket: Socket, msMax: number): void {
  if (!session.closed) session.close();
  const timer = setTimeout(() => socket.destroy(), msMax);
  socket.once('close', () => clearTimeout(timer));
}
