import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasBody } from '@latchkey/kit/http/lingering-response';
import { endWithEnvelope } from './raw-error.ts';

/**
 * Ends a request whose body has not arrived within a time, with 408. Node's own bound is one for the whole server, and has to let uploads pass.
 *
 * @param timeoutMs time from now, in milliseconds
 */
export function boundBody(req: IncomingMessage, res: ServerResponse, timeoutMs: number): void {
  if (req.complete || !hasBody(req)) return;
  const { socket } = req;
  const timer = setTimeout(() => {
    if (req.complete) return;
    // An answer that has begun would have the envelope among its bytes.
    if (res.headersSent) socket.destroy();
    else endWithEnvelope(socket, 408);
  }, timeoutMs);
  const clear = () => clearTimeout(timer);
  req.once('end', clear).once('close', clear);
  res.once('close', clear);
}
