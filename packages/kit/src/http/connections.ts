import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { lingeringClose, stopParsing } from './lingering-close.ts';
import { hasBody } from './lingering-response.ts';

/**
 * Most requests that may wait on one connection for the answers before theirs. Node sets no bound: a client that sends and never reads
 * fills the memory with requests under way.
 */
const WAITING_REQUESTS_MAX = 100;

/** Most bytes of answers that may wait on one connection when another request comes. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

/** What is under way on a connection. Two answers are enough to know the order, and to hold no more than that. */
interface Connection {
  /** The answer that was begun last, and the one before it where that had not been sent by then. */
  latest: ServerResponse | undefined;
  preceding: ServerResponse | undefined;
  /** Answers to requests that came while another was still to be sent, until they are sent themselves. */
  readonly waiting: Set<ServerResponse>;
  /** Whether the latest request is the last one that is accepted. */
  isLast: boolean;
}

const connections = new WeakMap<Duplex, Connection>();

/** Connections over which a file travels. */
const transferring = new WeakSet<Duplex>();

/**
 * Keeps track of what is under way on each connection of a server, and bounds it. The server's listeners for requests get those that are accepted:
 * beyond the most that may wait, and after one that asks for another protocol, the accepted ones are answered and the connection is closed.
 *
 * @returns the connections that are open, always up to date
 */
export function trackConnections(server: Server): ReadonlySet<Duplex> {
  const open = new Set<Duplex>();
  // Of a connection with TLS, requests know the secured one alone, and to write to the one below it would break it.
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
  const preceding = latest && isUnsent(latest) ? latest : undefined;
  if (preceding && waiting.size >= WAITING_REQUESTS_MAX) {
    endAfterLatest(connection, socket);
    return false;
  }
  connection.preceding = preceding;
  connection.latest = res;
  // Node drops the rest of what it has read behind such a request, and would take what follows for a new one.
  if (req.headers.upgrade !== undefined) endAfterLatest(connection, socket);
  if (!preceding) return true;
  waiting.add(res);
  res.once('close', () => waiting.delete(res));
  let bytes = 0;
  for (const answer of waiting) bytes += answer.writableLength;
  if (bytes <= WAITING_BYTES_MAX) return true;
  socket.destroy();
  return false;
}

/** Accepts no further request on a connection, and closes it once the latest one is answered. */
function endAfterLatest(connection: Connection, socket: Socket): void {
  connection.isLast = true;
  // Node would close it with bytes unread, and the reset would overtake the answers.
  socket.destroySoon = () => lingeringClose(socket);
  whenAnswered(socket, () => lingeringClose(socket));
  const req = connection.latest?.req;
  if (req && hasBody(req) && !req.complete) {
    req.once('end', () => stopParsing(socket));
    return;
  }
  // The parser is at work on what came with the request.
  socket.pause();
  setImmediate(() => stopParsing(socket));
}

/** Whether a request came on a connection whose answer has not been sent. */
export function isAnswering(socket: Duplex): boolean {
  const latest = connections.get(socket)?.latest;
  return latest !== undefined && isUnsent(latest);
}

/** The last answer that is still to be sent and does not wait for a part of its request that never comes or is broken. */
export function pendingAnswer(socket: Duplex): ServerResponse | undefined {
  const { latest, preceding } = connections.get(socket) ?? {};
  const last = latest?.req.complete ? latest : preceding;
  return last && isUnsent(last) ? last : undefined;
}

/** Has the last answer under way on a connection say that no more requests are taken on it, unless it has begun. */
export function closeAfterAnswer(socket: Duplex): void {
  const latest = connections.get(socket)?.latest;
  if (latest && !latest.headersSent) latest.shouldKeepAlive = false;
}

/** Calls back once no answer is under way on a connection, which takes no further requests by then where that can still be said. */
export function whenAnswered(socket: Duplex, then: () => void): void {
  const latest = connections.get(socket)?.latest;
  if (!latest || !isUnsent(latest)) {
    then();
    return;
  }
  closeAfterAnswer(socket);
  latest.once('close', () => whenAnswered(socket, then));
}

/** Whether a request is under way on a connection that has not come to its end. */
export function isReceiving(socket: Duplex): boolean {
  const latest = connections.get(socket)?.latest;
  return latest !== undefined && isUnsent(latest) && !latest.req.complete;
}

/** Whether a file travels over a connection, which may take long. */
export function isTransferring(socket: Duplex): boolean {
  return transferring.has(socket);
}

/** Marks a connection while a file travels over it. */
export async function whileTransferring<T>(socket: Duplex, transfer: () => Promise<T>): Promise<T> {
  transferring.add(socket);
  try {
    return await transfer();
  } finally {
    transferring.delete(socket);
  }
}

function isUnsent(res: ServerResponse): boolean {
  return !res.writableFinished && !res.destroyed;
}
