import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { lingeringClose, stopParsing } from './lingering-close.ts';
import { hasBody } from './request.ts';

/** Pipelined requests of one connection that wait for earlier responses. Node has no limit. */
const WAITING_REQUESTS_MAX = 100;

/** Bytes of responses that wait on one connection when another request comes. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

interface Connection {
  latest: ServerResponse | undefined;
  /** The response before the latest, if it had not been sent by then. */
  preceding: ServerResponse | undefined;
  /** Unsent responses to requests that came while another response was to be sent. */
  readonly waiting: Set<ServerResponse>;
  /** True if no request after the latest is accepted. */
  isLast: boolean;
}

const connections = new WeakMap<Duplex, Connection>();
const transferring = new WeakSet<Duplex>();

/**
 * Tracks and limits what is under way on each connection of a server, and returns the open ones.
 * Beyond the limit, and after a request for another protocol, no request reaches its listeners, and
 * the connection is closed once the accepted ones are answered.
 */
export function trackConnections(server: Server): ReadonlySet<Duplex> {
  const open = new Set<Duplex>();
  // With TLS, requests know only the secured socket.
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Duplex) => {
    open.add(socket);
    connections.set(socket, { latest: undefined, preceding: undefined, waiting: new Set(), isLast: false });
    socket.once('close', () => open.delete(socket));
  });
  const listeners = server.listeners('request');
  server.removeAllListeners('request');
  server.on('request', (req: IncomingMessage, res: ServerResponse) => {
    const connection = connections.get(req.socket);
    if (connection && !accept(connection, req, res)) return;
    for (const listener of listeners) listener.call(server, req, res);
  });
  return open;
}

function accept(connection: Connection, req: IncomingMessage, res: ServerResponse): boolean {
  const { latest, waiting } = connection;
  const { socket } = req;
  if (connection.isLast) return false;
  const preceding = isUnsent(latest) ? latest : undefined;
  if (preceding && waiting.size >= WAITING_REQUESTS_MAX) {
    endAfterLatest(connection, socket);
    return false;
  }
  connection.preceding = preceding;
  connection.latest = res;
  // Node drops what it has read behind such a request, and would parse what follows as a new one.
  if (req.headers.upgrade !== undefined) endAfterLatest(connection, socket);
  if (!preceding) return true;
  waiting.add(res);
  res.once('close', () => waiting.delete(res));
  if (waitingBytes(connection) <= WAITING_BYTES_MAX) return true;
  socket.destroy();
  return false;
}

const waitingBytes = ({ waiting }: Connection): number =>
  [...waiting].reduce((sum, response) => sum + response.writableLength, 0);

/** Bytes of responses that are in memory, as the client of a connection has not read them. */
export function unreadBytes(socket: Duplex): number {
  const connection = connections.get(socket);
  return socket.writableLength + (connection ? waitingBytes(connection) : 0);
}

/** Accepts no further request, and closes the connection once the latest is answered. */
function endAfterLatest(connection: Connection, socket: Socket): void {
  connection.isLast = true;
  // Node would close it with bytes unread, and the reset would overtake the responses.
  socket.destroySoon = () => lingeringClose(socket);
  whenAnswered(socket, () => lingeringClose(socket));
  const req = connection.latest?.req;
  if (req && hasBody(req) && !req.complete) {
    req.once('end', () => stopParsing(socket));
    return;
  }
  // The parser is still at work on what came with the request.
  socket.pause();
  setImmediate(() => stopParsing(socket));
}

/** True if a request of a connection has no whole response. */
export function isAnswering(socket: Duplex): boolean {
  return isUnsent(connections.get(socket)?.latest);
}

/** The last unsent response whose request has arrived. */
export function pendingAnswer(socket: Duplex): ServerResponse | undefined {
  const { latest, preceding } = connections.get(socket) ?? {};
  const last = latest?.req.complete ? latest : preceding;
  return isUnsent(last) ? last : undefined;
}

/** Sends `Connection: close` with the last response under way, unless it has begun. */
export function closeAfterAnswer(socket: Duplex): void {
  const latest = connections.get(socket)?.latest;
  if (latest && !latest.headersSent) latest.shouldKeepAlive = false;
}

/** Calls back once no response is under way; clients are asked to send no more requests. */
export function whenAnswered(socket: Duplex, then: () => void): void {
  const latest = connections.get(socket)?.latest;
  if (!isUnsent(latest)) {
    then();
    return;
  }
  closeAfterAnswer(socket);
  latest.once('close', () => whenAnswered(socket, then));
}

/** True if a request is under way that has not arrived whole. */
export function isReceiving(socket: Duplex): boolean {
  return isAnswering(socket) && !connections.get(socket)?.latest?.req.complete;
}

/** True if a file travels over a connection, which may take long. */
export function isTransferring(socket: Duplex): boolean {
  return transferring.has(socket);
}

export async function runTransfer<T>(socket: Duplex, transfer: () => Promise<T>): Promise<T> {
  transferring.add(socket);
  try {
    return await transfer();
  } finally {
    transferring.delete(socket);
  }
}

function isUnsent(res: ServerResponse | undefined): res is ServerResponse {
  return res !== undefined && !res.writableFinished && !res.destroyed;
}
