import { ConnectionError, LatchkeyError } from '../errors.ts';
import { createIdempotencyKey, type Http } from '../http/http.ts';
import { backoffMs, RETRY_AFTER_SECONDS_MAX, sleep } from '../http/retry.ts';
import type { Upload, UploadedFile } from '../types.ts';
import type { Content, ContentOptions } from './content.ts';

/** Size of a chunk: the service records as many bytes at a time. */
export const CHUNK_BYTES = 10 * 1024 * 1024;

/** Attempts without a new byte, together about a minute. */
const ATTEMPTS_MAX = 15;
/** Time that the service may take to notice that the last chunk broke off. */
const LOCKED_MS = 1_000;

interface Description extends ContentOptions {
  /** True to try again after a failure that may pass. */
  readonly continues: boolean;
  readonly applicationId: string;
  readonly fileName: string;
  readonly replace: boolean;
  readonly byteSize: number;
  /** SHA-256 in hex. */
  readonly sha256: string;
}

/**
 * Uploads bytes in chunks, from where an earlier upload of the same file ended. Undefined if a file
 * or another upload has the name: an upload in one request finds out whether it is this file.
 */
export async function uploadInChunks(http: Http, content: Content, description: Description): Promise<UploadedFile | undefined> {
  const { byteSize, sha256: checksum, signal, onProgress } = description;
  let upload = await findOrCreate(http, description);
  if (!upload) return undefined;
  const { id } = upload;
  const readUpload = () => http.call('GET /api/v1/panel/uploads/{id}', { path: { id } }, { signal });
  for (let attempt = 0; !upload.isFinished; ) {
    const from: number = upload.byteOffset;
    const to = Math.min(byteSize, from + CHUNK_BYTES);
    const onPart = ({ sentBytes }: { readonly sentBytes: number }) =>
      onProgress({ sentBytes: from + sentBytes, totalBytes: byteSize });
    try {
      onPart({ sentBytes: 0 });
      const request = http.toRequest('PATCH /api/v1/panel/uploads/{id}', { path: { id } });
      request.headers['content-type'] = 'application/offset+octet-stream';
      request.headers['upload-offset'] = String(from);
      await http.repeat(request, { signal }, () => content.send(http, request, { ...description, onProgress: onPart }, from, to));
      upload = { ...upload, byteOffset: to, isFinished: to === byteSize };
      attempt = 0;
    } catch (err) {
      attempt += 1;
      const delayMs = description.continues && attempt < ATTEMPTS_MAX ? retryDelayMs(err, attempt) : undefined;
      if (delayMs === undefined) throw err;
      await sleep(delayMs, signal);
      upload = await readUpload().catch((cause: unknown) => {
        if (retryDelayMs(cause, attempt) === undefined) throw cause;
        // The next chunk fails too, or at this offset.
        return upload as Upload;
      });
      if (upload.byteOffset > from) attempt = 0;
    }
  }
  // The file may have been deleted or renamed meanwhile.
  const { fileId } = upload.isReplacement ? await readUpload() : upload;
  return { id: fileId, byteSize, checksum };
}

/** Milliseconds until a chunk may succeed; undefined if it won't. */
function retryDelayMs(err: unknown, attempt: number): number | undefined {
  if (err instanceof ConnectionError) return backoffMs(attempt);
  const { status = 0, retryAfterSeconds = 0 } = err instanceof LatchkeyError ? err : {};
  if (status === 423) return LOCKED_MS;
  // The offset is another one, or the chunk took too long.
  if (status === 409 || status === 408) return backoffMs(attempt);
  const isPassing = (status === 429 || status === 503) && retryAfterSeconds <= RETRY_AFTER_SECONDS_MAX;
  return isPassing ? retryAfterSeconds * 1_000 + backoffMs(attempt) : undefined;
}

async function findOrCreate(http: Http, description: Description): Promise<Upload | undefined> {
  const { applicationId, fileName, replace, byteSize, sha256, signal } = description;
  const unfinished = await http.call('GET /api/v1/panel/uploads', {}, { signal });
  const named = unfinished.find((one) => one.applicationId === applicationId && one.fileName === fileName);
  if (named && (named.byteSize !== byteSize || named.sha256 !== sha256)) {
    const message = `The upload ${named.id} of another file is unfinished and has this name.`;
    throw new LatchkeyError(message, { code: 'upload_unfinished' });
  }
  if (named) return named.isReplacement && !replace ? undefined : named;
  const request = http.toRequest('POST /api/v1/panel/uploads', {});
  const metadata = Object.entries({ applicationId, fileName, sha256, ...(replace && { replace: 'true' }) }).map(
    ([key, value]) => `${key} ${btoa(value)}`,
  );
  request.headers['upload-length'] = String(byteSize);
  request.headers['upload-metadata'] = metadata.join();
  request.headers['idempotency-key'] = createIdempotencyKey();
  try {
    const created = await http.repeat(request, { signal }, () => http.attempt(request, {}, signal));
    return created.envelope.data as Upload;
  } catch (err) {
    if (err instanceof LatchkeyError && err.code === 'file_name_taken') return undefined;
    throw err;
  }
}
