import {
  type $Command,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import { createStallAgents, STALLED } from './s3-agents.ts';

/** Longest time for a call without a signal, its retries included, in milliseconds. */
const CALL_TIMEOUT_MS = 30_000;
/**
 * Longest time without a byte, in milliseconds. With the clean-up of a failed write (2 s) and of a
 * failed upload (2 s), an upload fails within 10 s after the store hangs.
 */
const STALL_MS = 4_500;
/** A connection is tried three times, which together must take no longer than a stall. */
const CONNECTION_TIMEOUT_MS = 1_500;
const CONNECTIONS_MAX = 64;
const ATTEMPTS_MAX = 3;
const MESSAGE_LENGTH_MAX = 200;

export interface S3Settings {
  /** Absent for Amazon's own. */
  readonly endpoint?: string | undefined;
  /** Where clients reach the same server, for their URLs. The endpoint unless set. */
  readonly publicEndpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Without a key, the library uses the environment, shared files, or a role. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle: boolean;
  readonly stallMs?: number | undefined;
}

export interface S3Bucket {
  readonly client: S3Client;
  /** Signs the URLs for clients, and sends nothing: a signature includes the host. */
  readonly urlClient: S3Client;
  readonly name: string;
  /**
   * Ends when the store stalls, and when the signal aborts; without one, after 30 s, the body of
   * the response aside. Rejects with S3Error.
   */
  send<I extends ServiceInputTypes, O extends ServiceOutputTypes>(
    command: $Command<I, O, S3ClientResolvedConfig>,
    signal?: AbortSignal,
  ): Promise<O>;
}

export function createS3Bucket(settings: S3Settings): S3Bucket {
  const client = createClient(settings);
  const { publicEndpoint } = settings;
  const urlClient = publicEndpoint === undefined ? client : createClient({ ...settings, endpoint: publicEndpoint });
  return {
    client,
    urlClient,
    name: settings.bucket,
    async send(command, signal) {
      const late = new AbortController();
      const timer = signal ? undefined : setTimeout(() => late.abort(), CALL_TIMEOUT_MS);
      try {
        return await client.send(command, { abortSignal: signal ?? late.signal });
      } catch (err) {
        throw toS3Error(err, late.signal.aborted);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function createClient(settings: S3Settings): S3Client {
  const { accessKeyId, secretAccessKey } = settings;
  return new S3Client({
    region: settings.region,
    ...(settings.endpoint === undefined ? {} : { endpoint: settings.endpoint }),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    forcePathStyle: settings.forcePathStyle,
    // Not every S3 server knows the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // With it, every part opens a new connection, and waits on servers that do not know it.
    expectContinueHeader: false,
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      // The agents' own limit is exact, and lets a slow store go on.
      socketTimeout: 0,
      ...createStallAgents(CONNECTIONS_MAX, settings.stallMs ?? STALL_MS),
    },
  });
}

/**
 * An error of an S3 server or its connection. The library's own errors must not be logged: they
 * hold the id of the key and the rejected signature.
 */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  /** S3's or the system's code, such as `NoSuchBucket` or `ECONNREFUSED`. */
  readonly code: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;

  constructor(message: string, code: string, metadata: { httpStatusCode?: number; requestId?: string } = {}) {
    super(message);
    this.code = code;
    this.status = metadata.httpStatusCode;
    this.requestId = metadata.requestId;
  }
}

function toS3Error(err: unknown, timedOut: boolean): S3Error {
  const { name, code = name, message, $metadata } = err as Error & { code?: string; $metadata?: object };
  if (timedOut || name === STALLED) return new S3Error('the object store did not answer in time', 'TimeoutError');
  return new S3Error(`the object store failed: ${code}: ${message.slice(0, MESSAGE_LENGTH_MAX)}`, code, $metadata);
}

/** Throws the error again unless it says that an object or upload does not exist. */
export function ignoreAbsent(err: unknown): undefined {
  const { code, status } = err as S3Error;
  // A missing bucket is 404 too, and must not pass for a missing object.
  const isAbsent = code === 'NoSuchKey' || code === 'NoSuchUpload' || (status === 404 && code !== 'NoSuchBucket');
  if (!(err instanceof S3Error) || !isAbsent) throw err;
}
