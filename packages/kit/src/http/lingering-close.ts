import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './request.ts';

/** Time for a peer to read its last response: in all, and while it sends nothing. */
const DEFAULT_LIMITS = { totalMs: 30_000, silenceMs: 5_000 };

const INPUT_EVENTS = ['data', 'end', 'resume', 'pause'] as const;

const lingering = new WeakSet<object>();

/** True if a connection only waits for its peer to read the last response. */
export function isLingering(socket: object): boolean {
  return lingering.has(socket);
}

/** Parses no further requests on a connection that still gets responses. */
export function stopParsing(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  for (const event of INPUT_EVENTS) socket.removeAllListeners(event);
  // Node resumes it after each response.
  socket.on('data', () => socket.pause());
  socket.pause();
}

/**
 * Closes a connection whose peer may still be sending (RFC 9112, 9.6): a socket closed with bytes
 * unread is reset, and the reset overtakes the response. So our side ends, and what still comes is
 * discarded until the peer ends its side or the limits, in milliseconds, are reached.
 */
export function lingeringClose(socket: Socket, lastBytes = '', { totalMs, silenceMs } = DEFAULT_LIMITS): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  for (const event of INPUT_EVENTS) socket.removeAllListeners(event);
  socket.removeAllListeners('timeout');
  // The first listener for data makes Node's parser let go of the socket.
  socket.on('data', () => undefined);
  socket.setTimeout(silenceMs, () => socket.destroy());
  const deadline = setTimeout(() => socket.destroy(), totalMs);
  socket.once('close', () => clearTimeout(deadline));
  socket.end(lastBytes);
  socket.resume();
  // With a full buffer, the parser has stopped reading, but the stream expects a read under way.
  socket.push('');
}

/**
 * A response that reaches a client which has not sent its whole request: it has `Connection:
 * close`, and the connection is closed with {@link lingeringClose}. Node itself reads the request
 * without limit, or resets the connection. For `http.createServer` as its `ServerResponse`.
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

/** True if part of a request is unread. Node discards a body that has arrived but is untouched. */
function isUnread(req: IncomingMessage): boolean {
  return hasBody(req) && !(req.complete && (req.readableEnded || !req.readableDidRead));
}
