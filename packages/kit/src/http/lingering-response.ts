import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lingeringClose } from './lingering-close.ts';

/**
 * A response that reaches a client which has not sent its whole request: it says `Connection: close`, and
 * the connection is closed with {@link lingeringClose}. Node itself reads the request without limit, or
 * resets the connection. For `http.createServer` as its `ServerResponse`.
 */
export class LingeringResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  // A request whose reading stops half way loses its socket.
  readonly #connection: Socket;

  constructor(...args: [R]) {
    // Node passes more arguments than the types say.
    super(...args);
    this.#connection = args[0].socket;
  }

  override writeHead(...args: unknown[]): this {
    const connection = this.#connection;
    if (isUnread(this.req)) {
      this.shouldKeepAlive = false;
      // Node calls this once the last response of a connection is out, and only then.
      connection.destroySoon = () => lingeringClose(connection);
    }
    return super.writeHead(...(args as Parameters<ServerResponse['writeHead']>)) as this;
  }
}

/** Whether there is more of a request than was read. Node discards a body that is there but untouched. */
function isUnread(req: IncomingMessage): boolean {
  return hasBody(req) && !(req.complete && (req.readableEnded || !req.readableDidRead));
}

/** Whether a request announces a body (RFC 9112, 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
