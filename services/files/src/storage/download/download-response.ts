import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { DomainError, defineErrors } from '@latchkey/kit/errors/errors';
import { rateLimitHeaders } from '@latchkey/kit/http/rate-limit-headers';
import { errorEnvelope, UNTRUSTED_CONTENT_POLICY } from '@latchkey/kit/http/response';
import { writeChunk } from '@latchkey/kit/http/write-chunk';
import { bytesSent } from '../../files-metrics.ts';
import type { StoredFile } from '../file/file.store.ts';
import { attachment } from '../object-store/object-store.ts';
import type { Validators } from './conditional-request.ts';

const RETRY_AFTER_UNAVAILABLE_S = '2';

/**
 * Headers of every response. The bytes are untrusted and may come from the origin of a dashboard:
 * nothing in them may run, pass for another type, or be shown inline. The URL is a secret: no cache
 * may store what it returns, and no page may pass it on.
 */
const SAFE_HEADERS = {
  'content-security-policy': UNTRUSTED_CONTENT_POLICY,
  'x-content-type-options': 'nosniff',
  'cache-control': 'private, no-store, no-transform',
  'referrer-policy': 'no-referrer',
};

export const validatorsOf = (file: StoredFile): Validators => ({
  etag: `"${file.checksum.toString('hex')}"`,
  lastModified: file.createdAt,
});

export function fileHeaders(file: StoredFile, requestId: string): OutgoingHttpHeaders {
  const { etag, lastModified } = validatorsOf(file);
  const validators = { etag, 'last-modified': lastModified.toUTCString() };
  return { ...SAFE_HEADERS, 'x-request-id': requestId, 'accept-ranges': 'bytes', ...validators };
}

export function bodyHeaders(file: StoredFile, byteSize: number): OutgoingHttpHeaders {
  return {
    'content-type': file.contentType,
    'content-length': byteSize,
    'content-disposition': attachment(file.displayName),
  };
}

const error = (httpStatus: number, message: string, path: string, rule: string) => {
  return { httpStatus, code: 'bad_request', message, details: [{ path, message: rule }] };
};

export const httpErrors = {
  methodNotAllowed: error(405, 'The method is not allowed', 'request', 'must use the method GET or HEAD'),
  preconditionFailed: error(412, 'A precondition does not hold', 'header', 'must hold for the file'),
  rangeUnsatisfiable: error(416, 'The range has no byte of the file', 'header.range', 'must begin within the file'),
};

export const { internal_error } = defineErrors({ internal_error: { kind: 'internal', message: 'Internal server error' } });

/** Sends the error envelope (specification 7), and nothing of the file but `headers`. */
export function sendError(
  res: ServerResponse,
  err: DomainError | (typeof httpErrors)[keyof typeof httpErrors],
  requestId: string,
  headers: OutgoingHttpHeaders = {},
): void {
  const body = JSON.stringify(errorEnvelope(err, requestId));
  const kind = err instanceof DomainError ? err.kind : undefined;
  res
    .writeHead(err.httpStatus, {
      ...SAFE_HEADERS,
      'x-request-id': requestId,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      ...(kind === 'rate_limited' && rateLimitHeaders(err as DomainError)),
      ...(kind === 'unavailable' && { 'retry-after': RETRY_AFTER_UNAVAILABLE_S }),
      ...headers,
    })
    .end(body);
}

/** The object is damaged: its size is not the file's. */
export class ObjectSizeError extends Error {}

/**
 * Sends a body as fast as the client reads it, one chunk at a time. Where the bytes end early, are
 * too many, fail, or stall, it destroys the connection, so that the client sees a body that was cut
 * short. It always closes the source. Throws what went wrong, a vanished client included.
 */
export async function sendBody(
  res: ServerResponse,
  source: Readable,
  { byteSize, stallTimeoutMs }: { readonly byteSize: number; readonly stallTimeoutMs: number },
): Promise<void> {
  let cause: Error | undefined;
  const stop = (err: Error) => {
    cause ??= err;
    source.destroy(err);
    res.destroy();
  };
  const timer = setTimeout(() => stop(new Error(`Nothing moved for ${stallTimeoutMs} ms`)), stallTimeoutMs);
  const onClose = () => stop(new Error('The client went away'));
  if (res.closed) onClose();
  res.once('close', onClose);
  try {
    let left = byteSize;
    let last: Buffer | undefined;
    for await (const chunk of source as AsyncIterable<Buffer>) {
      timer.refresh();
      left -= chunk.byteLength;
      if (left < 0) throw new ObjectSizeError(`The object has more than ${byteSize} bytes`);
      bytesSent.add(chunk.byteLength);
      if (left === 0) last = chunk;
      else await writeChunk(res, chunk);
      timer.refresh();
    }
    if (left > 0) throw new ObjectSizeError(`The object lacks ${left} of ${byteSize} bytes`);
    // After the end of the source: the client may close the connection once it has these bytes.
    if (last) await writeChunk(res, last);
    res.off('close', onClose);
    await new Promise<void>((resolve) => res.end(resolve));
  } catch (err) {
    res.destroy();
    throw cause ?? err;
  } finally {
    clearTimeout(timer);
    source.destroy();
  }
}
