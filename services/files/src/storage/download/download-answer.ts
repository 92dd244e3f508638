import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { DomainError, ERROR_KINDS } from '@latchkey/kit/errors';
import { denialHeaders } from '@latchkey/kit/http/denial-headers';
import { errorEnvelope } from '@latchkey/kit/http/envelope';
import type { DownloadableFile } from './download.store.ts';
import { toHttpDate } from './http-date.ts';
import type { Validators } from './precondition.ts';

/** Seconds after which a client may try again when something that a download depends on is down. */
const RETRY_AFTER_UNAVAILABLE_S = '2';

/**
 * Headers of every answer. The bytes are a stranger's and may come from the origin of a dashboard: nothing in them may run, be taken for
 * something else than it is said to be, or be shown in place. The URL is a secret: no cache may keep what is behind it, and no page may hand it
 * on.
 */
const SAFE_HEADERS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'private, no-store, no-transform',
  'referrer-policy': 'no-referrer',
};

/** The tag and the time by which a client tells whether it has the file already. */
export function validatorsOf(file: DownloadableFile): Validators {
  return { etag: `"${file.checksum.toString('hex')}"`, lastModified: file.createdAt };
}

/** Headers that every answer about a file has. */
export function fileHeaders(file: DownloadableFile, requestId: string): OutgoingHttpHeaders {
  const { etag, lastModified } = validatorsOf(file);
  return {
    ...SAFE_HEADERS,
    'x-request-id': requestId,
    'accept-ranges': 'bytes',
    etag,
    'last-modified': toHttpDate(lastModified),
  };
}

/** Headers of an answer with bytes of the file. A file name needs no escaping (specification 2.5). */
export function bodyHeaders(file: DownloadableFile, byteSize: number): OutgoingHttpHeaders {
  return {
    'content-type': file.contentType,
    'content-length': byteSize,
    'content-disposition': `attachment; filename="${file.displayName}"`,
  };
}

/** A refusal that HTTP names and the table of kinds does not. */
export type Refusal = Pick<DomainError, 'httpStatus' | 'code' | 'message' | 'details'>;

export const METHOD_NOT_ALLOWED = refusal(405, 'The method is not allowed', ['request', 'must use the method GET or HEAD']);
export const PRECONDITION_FAILED = refusal(412, 'A precondition does not hold', ['header', 'must hold for the file']);
export const RANGE_UNSATISFIABLE = refusal(416, 'The range has no byte of the file', [
  'header.range',
  'must begin within the file',
]);

function refusal(httpStatus: number, message: string, [path, rule]: readonly [path: string, rule: string]): Refusal {
  return { httpStatus, code: 'bad_request', message, details: [{ path, message: rule }] };
}

/** Sends the error envelope (specification 7), and nothing of the file but what `headers` say. */
export function sendRefusal(res: ServerResponse, refusal: Refusal, requestId: string, headers: OutgoingHttpHeaders = {}): void {
  const { httpStatus } = refusal;
  const body = JSON.stringify(errorEnvelope(refusal, requestId));
  res
    .writeHead(httpStatus, {
      ...SAFE_HEADERS,
      'x-request-id': requestId,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      ...(refusal instanceof DomainError && refusal.kind === 'rate_limited' && denialHeaders(refusal)),
      ...(httpStatus === ERROR_KINDS.unavailable.httpStatus && { 'retry-after': RETRY_AFTER_UNAVAILABLE_S }),
      ...headers,
    })
    .end(body);
}
