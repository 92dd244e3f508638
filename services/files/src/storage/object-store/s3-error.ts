import { STALLED } from './s3-agents.ts';

const MESSAGE_LENGTH_MAX = 200;

/**
 * What an S3 server or the way to it answered. The library's own errors hold whatever the server sent, which for a refused signature is the key's
 * id, the signature and the text that was signed: they go into no log.
 */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  /** S3's or the system's word for it, as `NoSuchBucket` or `ECONNREFUSED`. */
  readonly code: string;
  readonly status: number | undefined;
  /** What the server's operator finds the request by. */
  readonly requestId: string | undefined;

  constructor(message: string, details: { code: string; status?: number | undefined; requestId?: string | undefined }) {
    super(message);
    this.code = details.code;
    this.status = details.status;
    this.requestId = details.requestId;
  }
}

/** Takes what may be told of an error. */
export function toS3Error(err: unknown, timedOut: boolean): S3Error {
  if (err instanceof S3Error) return err;
  if (timedOut || (err as Error).name === STALLED)
    return new S3Error('the object store did not answer in time', { code: 'TimeoutError' });
  const { name, code, message, $metadata } = err as Error & {
    code?: string;
    $metadata?: { httpStatusCode?: number; requestId?: string };
  };
  const word = code ?? name;
  return new S3Error(`the object store failed: ${word}: ${message.slice(0, MESSAGE_LENGTH_MAX)}`, {
    code: word,
    status: $metadata?.httpStatusCode,
    requestId: $metadata?.requestId,
  });
}

/** Whether the store answered that there is no such thing. */
export function isAbsent(err: unknown): boolean {
  if (!(err instanceof S3Error)) return false;
  // A missing bucket is 404 too, and nobody may take that for a missing object.
  return err.code === 'NoSuchKey' || err.code === 'NoSuchUpload' || (err.status === 404 && err.code !== 'NoSuchBucket');
}

/** Whether the store answered that the range of bytes begins past the object's end. */
export function isPastEnd(err: unknown): boolean {
  return err instanceof S3Error && err.status === 416;
}
