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
import { limitConnections } from '../http/connection-limits.ts';
import { endWithTrust, followChanges, noteRefusedPeers, serverTlsOptions } from '../tls/server-tls.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { keepMessageReadable } from './grpc-message.ts';
import { closeSession, closeWhenIdle } from './idle-session.ts';
import type { NoteRefusal } from './refusal-log.ts';

/** Where gRPC is spoken, and within which bounds. */
export interface GrpcListenerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Most sessions at once; further connections are closed. */
  readonly sessionsMax: number;
  /** Of them, those of one network; as many as there are unless set. */
  readonly sessionsPerNetwork?: number;
  /** Time for the first that a client has to say, in milliseconds; that of a session without a call unless set. */
  readonly greetingMsMax?: number;
  /** Longest time that a call may take from its first byte to its last one, its answer's included, in milliseconds. A call of a path in `endless` has none. */
  readonly callMsMax: number;
  /** Time after which a session without a call is closed, in milliseconds; 5 minutes unless set. */
  readonly idleMsMax?: number | undefined;
  /** Paths of calls that go on for as long as the caller likes. */
  readonly endless: ReadonlySet<string>;
  /** What sessions are secured with. None unless set. */
  readonly tls?: ServiceTls | undefined;
  /** Told of whom it does not secure a connection with. */
  readonly onPeerRefused?: NoteRefusal;
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

const IDLE_MS_MAX = 5 * 60_000;

/** Calls that may be open on one session; a client has further ones wait. */
const STREAMS_PER_SESSION = 256;

/**
 * Listens for gRPC over HTTP/2, with TLS or in clear. Node ends no HTTP/2 session when its server closes, so an idle client would hold it open for ever;
 * this one ends them. Streams that are opened and reset in quick succession cost their session: that is Node's own bound.
 */
export async function listenForGrpc(handler: Handler, options: GrpcListenerOptions): Promise<GrpcListener> {
  const { host, port, sessionsMax } = options;
  const server = createHttp2Server((req, res) => {
    keepMessageReadable(res);
    handler(req, res);
  }, options.tls);
  if (options.onPeerRefused) noteRefusedPeers(server, options.onPeerRefused);
  limitConnections(server, { total: sessionsMax, perNetwork: options.sessionsPerNetwork ?? sessionsMax });
  const { sessions, sockets } = trackSessions(server, options);
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    if (!options.endless.has(String(headers[constants.HTTP2_HEADER_PATH]))) boundStream(stream, options.callMsMax);
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
      // Of one that is closed, the client's side may still be open.
      for (const socket of sockets) socket.destroy();
    },
  };
}

function createHttp2Server(handler: Handler, tls: ServiceTls | undefined): Http2Server | Http2SecureServer {
  const settings = { maxConcurrentStreams: STREAMS_PER_SESSION };
  if (!tls) return createServer({ settings }, handler);
  const server = createSecureServer({ ...serverTlsOptions(tls), settings, ALPNProtocols: ['h2'], allowHTTP1: false }, handler);
  followChanges(tls, server);
  return server;
}

/** Knows the sessions of a server and the connections that they are on, and closes those that are idle, or not to be trusted any more. */
function trackSessions(server: Http2Server | Http2SecureServer, options: GrpcListenerOptions) {
  const { tls, callMsMax, idleMsMax = IDLE_MS_MAX, greetingMsMax = idleMsMax } = options;
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  const sessionOn = new WeakMap<Socket, ServerHttp2Session>();
  let latest: Socket | undefined;
  // A session is made while its connection is told of, and gives no hold of it.
  server.prependListener(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    latest = socket;
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
    if (!latest) return;
    sessionOn.set(latest, session);
    closeWhenIdle(session, latest, { idleMsMax, greetingMsMax });
  });
  if (tls) {
    // Calls under way may end; those that have no end are cut off.
    endWithTrust(tls, server as Http2SecureServer, (socket) => {
      const session = sessionOn.get(socket);
      if (session) closeSession(session, socket, callMsMax);
    });
  }
  return { sessions, sockets };
}

/** Ends a call whatever holds it up: a body that does not come, or an answer that nobody reads. What is done for it has a deadline of its own. */
function boundStream(stream: ServerHttp2Stream, callMsMax: number): void {
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), callMsMax);
  stream.once('close', () => clearTimeout(timer));
}
