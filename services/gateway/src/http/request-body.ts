import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { commonErrors, type DomainError } from '@latchkey/kit/errors/errors';
import { ChunkedRequest } from '@latchkey/kit/http/chunked-request';
import { runTransfer } from '@latchkey/kit/http/connections';
import { endWithEnvelope, type RawAnswer, requestTooSlow } from '@latchkey/kit/http/raw-error';
import { countHeader, limitBodyTime } from '@latchkey/kit/http/request';
import type { FastifyInstance } from 'fastify';
import { errors } from '../errors.ts';

/** Media type of unknown bytes, also of a body without a type (RFC 9110, 8.3). */
export const BYTES_MEDIA_TYPE = 'application/octet-stream';
export const CHUNK_MEDIA_TYPE = 'application/offset+octet-stream';
const CONTENT_TYPE = 'header.content-type';

/** Accepted media types: one of those, or any but those of forms, which wrap the bytes. */
const BYTES_TYPES = {
  plain: (type: string) => type === BYTES_MEDIA_TYPE,
  chunk: (type: string) => type === CHUNK_MEDIA_TYPE,
  any: (type: string) => !type.startsWith('multipart/') && type !== 'application/x-www-form-urlencoded',
} as const;

/** Leaves the bodies of a part of the server to its handlers. Rejects all but plain bytes. */
export function leaveBodyUnread(part: FastifyInstance, types: keyof typeof BYTES_TYPES): void {
  part.removeAllContentTypeParsers();
  part.addContentTypeParser('*', (_request, _payload, done) => done(null));
  part.addHook('preValidation', async ({ raw }) => {
    if (countHeader(raw, 'content-type') > 1)
      throw commonErrors.request_malformed().withDetails({ path: CONTENT_TYPE, message: 'must be given once' });
    const { 'content-type': type, 'transfer-encoding': transfer = 'chunked' } = raw.headers;
    if (type !== undefined && !BYTES_TYPES[types](type.split(';', 1)[0]?.trim().toLowerCase() as string))
      throw bytesTypeUnsupported(types === 'chunk' ? CHUNK_MEDIA_TYPE : BYTES_MEDIA_TYPE);
    // Compressed bytes would be stored compressed.
    if (isEncoded(raw)) throw errors.encoding_unsupported();
    if (transfer.trim().toLowerCase() !== 'chunked')
      throw errors.encoding_unsupported().withDetails({ path: 'header.transfer-encoding', message: 'must be chunked' });
  });
}

export function bytesTypeUnsupported(mediaType = BYTES_MEDIA_TYPE): DomainError {
  return errors.media_type_unsupported().withDetails({ path: CONTENT_TYPE, message: `must be ${mediaType}` });
}

/** True if a body is compressed or otherwise encoded. The gateway decodes none. */
export function isEncoded({ headers: { 'content-encoding': encoding = 'identity' } }: IncomingMessage): boolean {
  return encoding.trim().toLowerCase() !== 'identity';
}

/** The declared size of a body, in bytes; undefined if only its end shows the size. */
export function announcedByteSize({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Math.min(Number(headers['content-length'] ?? 0), Number.MAX_SAFE_INTEGER);
}

/**
 * Reads a body without the server's timeout for silent clients, as `read` bounds the time itself.
 *
 * @throws `request_malformed` for any error after the client is gone, and `chunks_too_small`
 */
export async function withoutIdleTimeout<T>(req: IncomingMessage, read: () => Promise<T>): Promise<T> {
  // A reader that stops half way takes the socket away from the request.
  const socket = req.socket as Socket & { readonly server?: Server };
  socket.setTimeout(0);
  try {
    return await runTransfer(socket, read);
  } catch (err) {
    const reason = req instanceof ChunkedRequest ? (req.rejection ?? err) : err;
    throw socket.writable ? reason : commonErrors.request_malformed();
  } finally {
    if (!socket.destroyed) socket.setTimeout(socket.server?.timeout ?? 0);
  }
}

/**
 * Ends a request with 408 if its body has not arrived in time. Node's own timeout has to let
 * uploads pass.
 *
 * @param timeoutMs time from now, in milliseconds
 * @param headers besides those of every response
 */
export function boundBody(
  req: IncomingMessage,
  res: ServerResponse,
  timeoutMs: number,
  headers: RawAnswer['headers'] = {},
): void {
  limitBodyTime(req, res, timeoutMs, (socket) => {
    // A response that has begun would have the envelope among its bytes.
    if (res.headersSent) socket.destroy();
    else endWithEnvelope(socket, requestTooSlow(), { status: 408, headers });
  });
}

const expecting = new WeakSet<ServerResponse>();

/** Sends `100 Continue` (RFC 9110, 10.1.1) when the body is read. Node would not wait. */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    expecting.add(res);
    req.once('resume', () => sendContinue(res));
    server.emit('request', req, res);
  });
}

/** Sends `100 Continue` once to a client that waits for it, and not after the response. */
export function sendContinue(res: ServerResponse): void {
  if (expecting.delete(res) && !res.headersSent && !res.destroyed) res.writeContinue();
}
