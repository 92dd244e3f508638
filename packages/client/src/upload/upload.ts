import { LatchkeyError } from '../errors.ts';
import { createIdempotencyKey, type Http, type HttpRequest } from '../http/http.ts';
import { type CallOptions, checkTimeout } from '../options.ts';
import type { UploadedFile } from '../types.ts';
import { type OpenContent, toHex, type UploadProgress } from './content.ts';
import { CHUNK_BYTES, uploadInChunks } from './resumable.ts';

export interface UploadOptions extends CallOptions {
  /** Name of the file; that of the source if it has one. */
  readonly name?: string | undefined;
  /**
   * True to replace the file that has the name, if there is one: it keeps its id, and its content
   * until the new one is stored.
   */
  readonly replace?: boolean | undefined;
  /** Called while the bytes are sent; from 0 again if the upload is repeated. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
  /**
   * False to send the file in one request. Otherwise one of over 10 MiB, unless it is a stream, is
   * a resumable upload: it continues by itself, also that of a process which ended within 24 hours.
   * True to continue after a lost connection even if the client has no `retries`.
   */
  readonly resume?: boolean | undefined;
  /**
   * Longest time of an upload, in milliseconds, up to 2,147,483,647: 300,000 unless given.
   * That of 10 MiB if it is resumable.
   */
  readonly timeoutMs?: number | undefined;
}

/** Longer than the default limit of the service, UPLOAD_DEADLINE_SECONDS. */
const TIMEOUT_MS = 300_000;
const TARGET = 'POST /api/v1/panel/upload-file';
const MIB = 1_048_576;
export const BYTES = 'application/octet-stream';

export async function uploadFile<Source>(
  http: Http,
  openContent: OpenContent<Source>,
  applicationId: string,
  source: Source,
  options: UploadOptions,
): Promise<UploadedFile> {
  const { signal, timeoutMs = TIMEOUT_MS, onProgress = () => undefined, replace = false } = options;
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  const content = await openContent(source);
  try {
    const { byteSize } = content;
    const fileName = options.name ?? content.name;
    if (byteSize !== undefined) await checkSize(http, byteSize, fileName ?? 'The file', signal);
    await content.hash?.(signal);
    signal?.throwIfAborted();
    const { sha256 } = content;
    if (fileName === undefined) throw new TypeError('The source has no name: pass the option name');
    const sending = { signal, timeoutMs, onProgress };
    if (options.resume !== false && sha256 && byteSize !== undefined && byteSize > CHUNK_BYTES) {
      const continues = options.resume ?? http.options.retries > 0;
      const description = { ...sending, continues, applicationId, fileName, replace, byteSize, sha256: toHex(sha256) };
      const stored = await uploadInChunks(http, content, description);
      if (stored) return stored;
    }
    const request = http.toRequest(TARGET, { query: { applicationId, fileName, ...(replace && { replace }) } });
    request.headers['content-type'] = BYTES;
    if (sha256) addDigest(request, sha256, options.idempotencyKey);
    const repetition = { signal, repeatable: byteSize !== undefined };
    const success = await http.repeat(request, repetition, () => content.send(http, request, sending));
    return checkStored(success.envelope.data as UploadedFile, content.sha256);
  } finally {
    await content.close?.();
  }
}

async function checkSize(http: Http, byteSize: number, name: string, signal: AbortSignal | undefined): Promise<void> {
  if (byteSize === 0)
    throw new LatchkeyError(`${name} is empty: files have at least 1 byte.`, { code: 'invalid_file', status: 400 });
  // No limit is below 1 MiB.
  if (byteSize <= MIB) return;
  const reading = http.call('GET /api/v1/panel/get-account-limits', {}, { signal });
  // Some keys may not read limits.
  const maxMiB = (await reading.catch(() => signal?.throwIfAborted()))?.fileSizeMiB;
  if (maxMiB === undefined || byteSize <= maxMiB * MIB) return;
  throw new LatchkeyError(`${name} is too large: it has ${toMiB(byteSize)} MiB, and files have at most ${maxMiB} MiB.`, {
    code: 'limit_exceeded',
    status: 413,
    details: [{ path: 'file', message: `must have at most ${maxMiB} MiB` }],
  });
}

/** Rounded up: a file above the limit never shows the limit. */
const toMiB = (bytes: number) => (Math.ceil((bytes * 10) / MIB) / 10).toFixed(1);

function checkStored(stored: UploadedFile, sha256: Uint8Array | undefined): UploadedFile {
  if (sha256 === undefined || toHex(sha256) === stored.checksum) return stored;
  const message = `The service stored other bytes than were sent, as file ${stored.id}: delete it, and upload again.`;
  throw new LatchkeyError(message, { code: 'checksum_mismatch' });
}

/** Has a request carry an idempotency key, with the digest that stands for its body. */
export function addDigest({ headers }: HttpRequest, sha256: Uint8Array, key = createIdempotencyKey()): void {
  headers['content-digest'] = `sha-256=:${btoa(String.fromCharCode(...sha256))}:`;
  headers['idempotency-key'] = key;
}
