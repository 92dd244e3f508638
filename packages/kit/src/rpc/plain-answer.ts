import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Code, ConnectError } from '@connectrpc/connect';
import type { LeanAnswer } from './lean-exchange.ts';
import { tooLarge } from './lean-request.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/** Longest wait for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;

/** Fails a request that gets no connection in time. Node's own time-outs also count what comes after. */
export function boundConnect(req: ClientRequest): void {
  req.once('socket', (socket: Socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => req.destroy(new Error('no connection in time')), CONNECT_TIMEOUT_MS);
    const clear = () => clearTimeout(timer);
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', clear).once('close', clear);
  });
}

/** The error of a request that could not be sent, or got no whole answer. */
export function unreachable(err: Error): ConnectError {
  return new ConnectError(err.message, Code.Unavailable, undefined, undefined, err);
}

/**
 * Reads an answer that is a message or an error.
 *
 * @throws ConnectError `unavailable` where it breaks off, `resource_exhausted` where it is too large
 */
export async function readAnswer(res: IncomingMessage): Promise<LeanAnswer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of res as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > MESSAGE_BYTES_MAX) break;
      chunks.push(chunk);
    }
  } catch (err) {
    throw unreachable(err as Error);
  }
  if (size > MESSAGE_BYTES_MAX) throw tooLarge('answer');
  if (!res.complete) throw unreachable(new Error('the answer was cut off'));
  return { status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) };
}
