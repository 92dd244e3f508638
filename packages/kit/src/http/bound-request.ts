import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasBody } from './lingering-response.ts';

/**
 * Destroys the connection of a request whose body has not arrived within a time. Node's own bound is one for the whole server, and has to be as
 * long as that of the slowest request.
 *
 * @param timeoutMs time from now, in milliseconds
 */
export function boundRequest(req: IncomingMessage, res: ServerResponse, timeoutMs: number): void {
  if (req.complete || !hasBody(req)) return;
  // Whoever stops reading a request half way takes the socket away from it.
  const { socket } = req;
  const timer = setTimeout(() => {
    if (!req.complete) socket.destroy();
  }, timeoutMs);
  const clear = () => clearTimeout(timer);
  req.once('end', clear).once('close', clear);
  // An answer that comes before the whole request is followed by a close that has bounds of its own.
  res.once('close', clear);
}
