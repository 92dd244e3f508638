import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './lingering-response.ts';

/**
 * Bounds the time for the body of a request. Node's own limit is one for the whole server.
 *
 * @param timeoutMs time from now, in milliseconds
 * @param onLate called with the connection of a body that takes longer; destroys it unless given
 */
export function boundRequest(
  req: IncomingMessage,
  res: ServerResponse,
  timeoutMs: number,
  onLate = (socket: Socket): unknown => socket.destroy(),
): void {
  if (req.complete || !hasBody(req)) return;
  // A request whose reading stops half way loses its socket.
  const { socket } = req;
  const timer = setTimeout(() => {
    if (!req.complete) onLate(socket);
  }, timeoutMs);
  const clear = () => clearTimeout(timer);
  req.once('end', clear).once('close', clear);
  // A response before the whole request is followed by a close with limits of its own.
  res.once('close', clear);
}
