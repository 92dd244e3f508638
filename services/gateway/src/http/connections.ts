import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The answer that was begun last on each connection. */
const latestAnswers = new WeakMap<Duplex, ServerResponse>();

/** What was still to be sent when an answer was begun: the answer before it, of a client that does not wait. */
const precedingAnswers = new WeakMap<ServerResponse, ServerResponse>();

/**
 * Keeps track of what is under way on each connection of a server.
 *
 * @returns the connections that are open, always up to date
 */
export function trackConnections(server: Server): ReadonlySet<Duplex> {
  const open = new Set<Duplex>();
  server.on('connection', (socket: Duplex) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', (req: IncomingMessage, res: ServerResponse) => {
    const before = latestAnswers.get(req.socket);
    if (before && !before.writableFinished) precedingAnswers.set(res, before);
    latestAnswers.set(req.socket, res);
  });
  return open;
}

/** Whether a request came on a connection whose answer has not been sent. */
export function isAnswering(socket: Duplex): boolean {
  const latest = latestAnswers.get(socket);
  return latest !== undefined && isUnsent(latest);
}

/** The last answer that is still to be sent and does not wait for a part of its request that never comes or is broken. */
export function pendingAnswer(socket: Duplex): ServerResponse | undefined {
  const latest = latestAnswers.get(socket);
  const last = latest?.req.complete ? latest : latest && precedingAnswers.get(latest);
  return last && isUnsent(last) ? last : undefined;
}

function isUnsent(res: ServerResponse): boolean {
  return !res.writableFinished && !res.destroyed;
}
