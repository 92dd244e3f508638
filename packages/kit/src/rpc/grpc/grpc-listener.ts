import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { limitConnections } from '../../http/concurrency-limit.ts';
import { followRenewals, logRejectedPeers, serverTlsOptions, whenUntrusted } from '../../tls/server-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { methodPath } from '../route.ts';
import type { ServerLimits } from '../server/limits.ts';
import type { LogRejection } from '../server/rejection-log.ts';
import { keepMessageReadable } from './grpc-message.ts';

/** Settings of {@link listenForGrpc}. */
export interface GrpcListenerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly limits: ServerLimits;
  /** Cleartext unless set. */
  readonly tls: ServiceTls | undefined;
  readonly logRejectedPeer: LogRejection;
}

/** An HTTP/2 server that listens. */
export interface GrpcListener {
  readonly port: number;
  /** Refuses new connections and calls; resolves once the calls under way have ended. */
  close(): Promise<void>;
  /** Ends what is still open. */
  destroy(): void;
}

type Handler = (req: Http2ServerRequest, res: Http2ServerResponse) => void;

/** Concurrent calls of one session; a client queues further ones. */
const STREAMS_PER_SESSION = 256;

/** Time for a client to end its side of an idle session, in milliseconds. Node waits for ever. */
const CLOSE_MS_MAX = 1_000;

/** Goes on as long as its caller likes. */
const WATCH = methodPath(Health.method.watch);

/**
 * Listens for gRPC over HTTP/2. Node itself ends no session when its server closes, so an idle client
 * would hold it open for ever.
 */
export async function listenForGrpc(handler: Handler, options: GrpcListenerOptions): Promise<GrpcListener> {
  const { host, port, tls, limits } = options;
  const server = createHttp2Server((req, res) => {
    keepMessageReadable(res);
    handler(req, res);
  }, tls);
  if (tls) logRejectedPeers(server, options.logRejectedPeer);
  limitConnections(server, { total: limits.connections, perNetwork: limits.connectionsPerIp });
  const { sessions, sockets } = trackSessions(server, options);
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    if (headers[constants.HTTP2_HEADER_PATH] === WATCH) return;
    // Ends a call whose body does not come, or whose response is not read.
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), limits.callMs);
    stream.once('close', () => clearTimeout(timer));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.close();
      }),
    destroy() {
      for (const session of sessions) session.destroy();
      // A closed session leaves the client's side of its connection open.
      for (const socket of sockets) socket.destroy();
    },
  };
}

function createHttp2Server(handler: Handler, tls: ServiceTls | undefined): Http2Server | Http2SecureServer {
  const settings = { maxConcurrentStreams: STREAMS_PER_SESSION };
  if (!tls) return createServer({ settings }, handler);
  const server = createSecureServer({ ...serverTlsOptions(tls), settings, ALPNProtocols: ['h2'], allowHTTP1: false }, handler);
  followRenewals(tls, server);
  return server;
}

/** Tracks sessions and their connections, and closes those that are idle or no longer trusted. */
function trackSessions(server: Http2Server | Http2SecureServer, { tls, limits }: GrpcListenerOptions) {
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  // A session is created during this event, and gives no access to its connection.
  let latest: Socket;
  server.prependListener(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    latest = socket;
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session: ServerHttp2Session) => {
    const socket = latest;
    sessions.add(session);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
    closeWhenIdle(session, socket, limits);
    // Calls under way may end; watches are cut off.
    if (tls) whenUntrusted(tls, socket as TLSSocket, () => closeSession(session, socket, limits.callMs));
  });
  return { sessions, sockets };
}

/** Closes a session without a preface, and one without a call for a time. A call has a limit of its own. */
function closeWhenIdle(session: ServerHttp2Session, socket: Socket, { idleMs, headMs }: ServerLimits): void {
  let openCalls = 0;
  session.on('stream', (stream) => {
    openCalls += 1;
    stream.once('close', () => {
      openCalls -= 1;
    });
  });
  session.setTimeout(idleMs);
  session.on('timeout', () => {
    if (openCalls === 0) closeSession(session, socket, CLOSE_MS_MAX);
  });
  const preface = setTimeout(() => socket.destroy(), headMs);
  session.once('remoteSettings', () => clearTimeout(preface));
  session.once('close', () => clearTimeout(preface));
}

/** Closes a session once its calls have ended, or after a time in milliseconds. */
function closeSession(session: ServerHttp2Session, socket: Socket, msMax: number): void {
  if (!session.closed) session.close();
  const timer = setTimeout(() => socket.destroy(), msMax);
  socket.once('close', () => clearTimeout(timer));
}
