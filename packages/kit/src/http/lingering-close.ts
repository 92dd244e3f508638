import type { Socket } from 'node:net';

/** How long a peer is listened to after the last thing that it is told. */
export interface LingerBounds {
  /** In all, in milliseconds. */
  readonly totalMs: number;
  /** While nothing comes, in milliseconds. */
  readonly silenceMs: number;
}

const DEFAULT_BOUNDS: LingerBounds = { totalMs: 30_000, silenceMs: 5_000 };

/** What Node's HTTP server listens for on its connections to read requests, and must not hear any more. */
const INPUT_EVENTS = ['data', 'end', 'resume', 'pause'] as const;

const lingering = new WeakSet<object>();

/** Whether a connection has had its last answer and is only listened to until its peer has read it. */
export function isLingering(socket: object): boolean {
  return lingering.has(socket);
}

/** Stops parsing requests on a connection that still gets responses. Unread bytes stay in the kernel. */
export function stopParsing(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  takeFromParser(socket);
  // Node resumes it after each answer.
  socket.on('data', () => socket.pause());
  socket.pause();
}

function takeFromParser(socket: Socket): void {
  for (const event of INPUT_EVENTS) socket.removeAllListeners(event);
}

/**
 * Closes a connection of an HTTP server whose peer may still be sending (RFC 9112, 9.6). A socket that is closed with bytes unread is reset, and
 * the reset overtakes the answer. So our side is ended, and what still comes is read and discarded, not as HTTP, until the peer ends its own side
 * or the bounds are reached.
 *
 * @param lastBytes what the peer shall be told beside what has been written to the socket
 */
export function lingeringClose(socket: Socket, lastBytes = '', { totalMs, silenceMs }: LingerBounds = DEFAULT_BOUNDS): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  takeFromParser(socket);
  socket.removeAllListeners('timeout');
  // The first listener for data makes Node's parser let go of the socket.
  socket.on('data', () => undefined);
  socket.setTimeout(silenceMs, () => socket.destroy());
  const deadline = setTimeout(() => socket.destroy(), totalMs);
  socket.once('close', () => clearTimeout(deadline));
  socket.end(lastBytes);
  socket.resume();
  // A request whose buffer was full has had its parser stop the reading, and the stream believes that a read is still under way.
  socket.push('');
}
