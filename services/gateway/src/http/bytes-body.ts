import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { commonErrors, type DomainError } from '@latchkey/kit/errors';
import { ChunkedRequest } from '@latchkey/kit/http/chunked-request';
import { whileTransferring } from '@latchkey/kit/http/connections';
import { countHeader } from '@latchkey/kit/http/raw-headers';
import type { FastifyInstance } from 'fastify';
import { errors } from '../errors.ts';

/** The media type of a body that nothing is known of; one without a type may be taken for it (RFC 9110, 8.3). */
export const BYTES_MEDIA_TYPE = 'application/octet-stream';

/** The types that a body may be said to have: that one, or any that does not wrap the bytes in something else. */
export const BYTES_TYPES = {
  plain: (type: string) => type === BYTES_MEDIA_TYPE,
  any: (type: string) => !type.startsWith('multipart/') && type !== 'application/x-www-form-urlencoded',
} as const;

/**
 * Has a part of the server leave bodies to its handlers, and refuse those that are not plain bytes.
 *
 * @param types which media types the bytes may be said to have
 */
export function leaveBodyUnread(part: FastifyInstance, types: keyof typeof BYTES_TYPES): void {
  part.removeAllContentTypeParsers();
  part.addContentTypeParser('*', (_request, _payload, done) => done(null));
  part.addHook('preValidation', async (request) => checkPlainBytes(request.raw, types));
}

/**
 * Throws `media_type_unsupported` for what is said to be anything else, `encoding_unsupported` for what is compressed, as it would be stored
 * so, and `request_malformed` for what is said to be two things.
 */
function checkPlainBytes(req: IncomingMessage, types: keyof typeof BYTES_TYPES): void {
  const { headers } = req;
  if (countHeader(req, 'content-type') > 1)
    throw commonErrors.request_malformed().withDetails({ path: CONTENT_TYPE, message: 'must be given once' });
  const type = headers['content-type'];
  const isBytes = type === undefined || BYTES_TYPES[types](type.split(';', 1)[0]?.trim().toLowerCase() as string);
  const { 'transfer-encoding': transfer = 'chunked' } = headers;
  if (!isBytes) throw bytesTypeUnsupported();
  if (isEncoded(req)) throw errors.encoding_unsupported();
  if (transfer.trim().toLowerCase() !== 'chunked')
    throw errors.encoding_unsupported().withDetails({ path: 'header.transfer-encoding', message: 'must be chunked' });
}

const CONTENT_TYPE = 'header.content-type';

/** The error for bytes of a type that the route does not take. */
export function bytesTypeUnsupported(): DomainError {
  return errors.media_type_unsupported().withDetails({ path: CONTENT_TYPE, message: `must be ${BYTES_MEDIA_TYPE}` });
}

/** Whether a body is said to be compressed, or otherwise encoded, which nobody undoes here. */
export function isEncoded({ headers: { 'content-encoding': encoding = 'identity' } }: IncomingMessage): boolean {
  return encoding.trim().toLowerCase() !== 'identity';
}

/** The size that a request says its body has, in bytes; undefined where only its end will tell. */
export function announcedByteSize({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Math.min(Number(headers['content-length'] ?? 0), Number.MAX_SAFE_INTEGER);
}

/**
 * Lets a client be silent while its bytes are read: how long they may take is for whoever reads them to say, and the connection must be there for
 * the answer. What fails after the connection has broken off fails because of that.
 *
 * @throws `request_malformed` where the client is gone, and `chunks_too_small`
 */
export async function whileBytesCome<T>(req: IncomingMessage, read: () => Promise<T>): Promise<T> {
  // Whoever stops reading half way takes the socket away from the request.
  const socket = req.socket as Socket & { readonly server?: Server };
  socket.setTimeout(0);
  try {
    return await whileTransferring(socket, read);
  } catch (err) {
    const reason = req instanceof ChunkedRequest ? (req.refusal ?? err) : err;
    throw socket.writable ? reason : commonErrors.request_malformed();
  } finally {
    if (!socket.destroyed) socket.setTimeout(socket.server?.timeout ?? 0);
  }
}
