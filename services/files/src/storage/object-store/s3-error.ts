import { STALLED } from './s3-agents.ts';

const MESSAGE_LENGTH_MAX = 200;

/**
 * An error of an S3 server or the connection to it. The library's own errors hold whatever the
 * server sent, such as the key's id and the signature it rejected: they must not be logged.
 */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  /** S3's or the system's code, such as `NoSuchBucket` or `ECONNREFUSED`. */
  readonly code: string;
  readonly status: number | undefined;
  /** Id of the request for the server's operator. */
  readonly requestId: string | undefined;

  constructor(message: string, details: { code: string; status?: number | undefined; requestId?: string | undefined }) {
    super(message);
    this.code = details.code;
    this.status = details.status;
    this.requestId = details.requestId;
  }
}

/** What may be logged of an error. */
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

/** Throws the error again unless it says that an object or upload does not exist. */
export function ignoreAbsent(err: unknown): undefined {
  const { code, status } = err as S3Error;
  // A missing bucket is 404 too, and must not pass for a missing object.
  const isAbsent = code === 'NoSuchKey' || code === 'NoSuchUpload' || (status === 404 && code !== 'NoSuchBucket');
  if (!(err instanceof S3Error) || !isAbsent) throw err;
}

/** Whether the range of bytes begins past the object's end. */
export function isPastEnd(err: unknown): boolean {
  return err instanceof S3Error && err.status === 416;
}
