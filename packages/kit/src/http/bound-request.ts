import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './lingering-response.ts';

/**
 * Bounds the time that the body of a request may take. Node's own bound is one for the whole server, and has to be as long as that of the slowest
 * request.
 *
 * @param timeoutMs time from now, in milliseconds
 * @param onLate what happens to the connection of one that takes longer; it is destroyed unless given
 */
export function boundRequest(
  req: IncomingMessage,
  res: ServerResponse,
  timeoutMs: number,
  onLate = (socket: Socket): unknown => socket.destroy(),
): void {
  if (req.complete || !hasBody(req)) return;
  // Whoever stops reading a request half way takes the socket away from it.
  const { socket } = req;
  const timer = setTimeout(() => {
    if (!req.complete) onLate(socket);
  }, timeoutMs);
  const clear = () => clearTimeout(timer);
  req.once('end', clear).once('close', clear);
  // An answer that comes before the whole request is followed by a close that has bounds of its own.
  res.once('close', clear);
}
