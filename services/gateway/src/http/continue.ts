import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Answers whose clients wait for leave to send the body. */
const expecting = new WeakSet<ServerResponse>();

/**
 * Keeps Node from asking for a body before anybody has looked at the request: whoever expects `100 Continue` (RFC 9110, 10.1.1) hears it when the
 * body is read, and where it is not, only the answer.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    expecting.add(res);
    req.once('resume', () => sendContinue(res));
    server.emit('request', req, res);
  });
}

/** Asks for the body where the client waits for that, once, and not when it has its answer. */
export function sendContinue(res: ServerResponse): void {
  if (expecting.delete(res) && !res.headersSent && !res.destroyed) res.writeContinue();
}
