import type { IncomingMessage, ServerResponse } from 'node:http';
import { boundRequest } from '@latchkey/kit/http/bound-request';
import { endWithEnvelope, type RawAnswer, requestTooSlow } from '@latchkey/kit/http/raw-error';

/**
 * Ends a request whose body has not arrived within a time, with 408. Node's own bound is one for the whole server, and has to let uploads pass.
 *
 * @param timeoutMs time from now, in milliseconds
 * @param headers beside those that every answer has
 */
export function boundBody(
  req: IncomingMessage,
  res: ServerResponse,
  timeoutMs: number,
  headers: RawAnswer['headers'] = {},
): void {
  boundRequest(req, res, timeoutMs, (socket) => {
    // An answer that has begun would have the envelope among its bytes.
    if (res.headersSent) socket.destroy();
    else endWithEnvelope(socket, requestTooSlow(), { status: 408, headers });
  });
}
