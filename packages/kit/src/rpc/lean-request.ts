import type { IncomingMessage } from 'node:http';
import { fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { BoundMethod } from './bound-method.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX } from './route.ts';

/** Whether a request is a unary Connect call in binary and not compressed. */
export function isLean({ headers }: IncomingMessage): boolean {
  return headers['content-type'] === 'application/proto' && (headers['content-encoding'] ?? 'identity') === 'identity';
}

/**
 * The deadline that a caller asked for, in milliseconds, within what a server allows.
 *
 * @throws ConnectError `invalid_argument` for anything but up to ten digits (https://connectrpc.com/docs/protocol#unary-request)
 */
export function parseTimeout(value: string | string[] | undefined): number {
  if (value === undefined) return DEADLINE_MS_MAX;
  if (typeof value !== 'string' || !/^\d{1,10}$/.test(value)) {
    throw new ConnectError('connect-timeout-ms must be up to ten digits', Code.InvalidArgument);
  }
  return Math.min(Number(value), DEADLINE_MS_MAX);
}

/** Reads the whole body, and keeps no more than the limit whether or not a length was declared. */
export function readBody(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > MESSAGE_BYTES_MAX) return Promise.reject(tooLarge('request'));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size <= MESSAGE_BYTES_MAX) chunks.push(chunk);
      else {
        chunks.length = 0;
        reject(tooLarge('request'));
      }
    });
    req.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    req.on('error', () => reject(new ConnectError('the request was cut off', Code.Canceled)));
  });
}

/** Reads a request message, or refuses it. */
export function parseMessage(method: BoundMethod['method'], body: Buffer): Message {
  try {
    return fromBinary(method.input, body);
  } catch {
    throw new ConnectError('the request is no valid message', Code.InvalidArgument);
  }
}

/** The error of a message beyond the limit. */
export function tooLarge(what: 'request' | 'answer'): ConnectError {
  return new ConnectError(`the ${what} is larger than ${MESSAGE_BYTES_MAX} bytes`, Code.ResourceExhausted);
}
