import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lingeringClose } from './lingering-close.ts';

/**
 * An answer that reaches its client also when that has not sent its whole request yet: it then says `Connection: close`, and the connection is
 * closed with {@link lingeringClose}. Node by itself goes on reading the request without a bound, or resets the connection. To be given to
 * `http.createServer` as its `ServerResponse`.
 */
export class LingeringResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  // Whoever stops reading a request half way takes the socket away from it.
  readonly #connection: Socket;

  constructor(...args: [R]) {
    // Node gives more than the types say.
    super(...args);
    this.#connection = args[0].socket;
  }

  override writeHead(...args: unknown[]): this {
    const connection = this.#connection;
    if (isUnread(this.req)) {
      this.shouldKeepAlive = false;
      // Node calls this once the last answer of a connection is out, and only then.
      connection.destroySoon = () => lingeringClose(connection);
    }
    return super.writeHead(...(args as Parameters<ServerResponse['writeHead']>)) as this;
  }
}

/** Whether there is more of a request than was read. Node takes care of a body that is there and that nobody touched. */
function isUnread(req: IncomingMessage): boolean {
  const isDone = req.complete && (req.readableEnded || !req.readableDidRead);
  return !isDone && hasBody(req);
}

/** Whether a request announces a body (RFC 9112, 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
