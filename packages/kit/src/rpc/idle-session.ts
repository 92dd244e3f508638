import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** How long a client has to end its side once its session is closed, in milliseconds. Node waits for ever. */
const CLOSE_MS_MAX = 1_000;

/** How long a session may do nothing. */
export interface IdleBounds {
  /** Between two calls, in milliseconds. */
  readonly idleMsMax: number;
  /** Before its client has said what every client begins with, in milliseconds. */
  readonly greetingMsMax: number;
}

/** Closes a session over which nothing has gone for a time, unless a call is open on it, which has a bound of its own. */
export function closeWhenIdle(session: ServerHttp2Session, socket: Socket, { idleMsMax, greetingMsMax }: IdleBounds): void {
  let open = 0;
  session.on('stream', (stream) => {
    open += 1;
    stream.once('close', () => {
      open -= 1;
    });
  });
  session.setTimeout(idleMsMax);
  session.on('timeout', () => {
    if (open === 0) closeSession(session, socket, CLOSE_MS_MAX);
  });
  const greeting = setTimeout(() => socket.destroy(), greetingMsMax);
  session.once('remoteSettings', () => clearTimeout(greeting));
  session.once('close', () => clearTimeout(greeting));
}

/**
 * Closes a session once the calls on it have ended, or after a time. A call that is on its way by now is told that nobody has read it.
 *
 * @param msMax time for the calls, and for the client to end its side, in milliseconds
 */
export function closeSession(session: ServerHttp2Session, socket: Socket, msMax: number): void {
  if (!session.closed) session.close();
  const timer = setTimeout(() => socket.destroy(), msMax);
  socket.once('close', () => clearTimeout(timer));
}
