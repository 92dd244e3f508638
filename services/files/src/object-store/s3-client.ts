import { S3Client } from '@aws-sdk/client-s3';
import { toS3Error } from './s3-error.ts';

/** Longest time for a call and its repetitions together, in milliseconds. */
const CALL_TIMEOUT_MS = 30_000;
const CONNECTION_TIMEOUT_MS = 3_000;
const CONNECTIONS_MAX = 64;
const ATTEMPTS_MAX = 3;

/** How to reach a bucket. */
export interface S3Settings {
  /** Absent for Amazon's own. */
  readonly endpoint?: string | undefined;
  /** Where clients reach the same server, which their URLs then name. The endpoint unless set. */
  readonly publicEndpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Without a key, the usual places are asked: environment, shared files, the machine's or the pod's role. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle: boolean;
  readonly checksums: 'when_required' | 'when_supported';
  /** Longest time for a call and its repetitions together, in milliseconds; 30,000 by default. */
  readonly callTimeoutMs?: number | undefined;
}

/** A bucket, and calls to it that end. */
export interface S3Bucket {
  readonly client: S3Client;
  /** Signs the URLs that clients are given, and is never sent with: a signature holds the name that the server is reached by. */
  readonly urlClient: S3Client;
  readonly name: string;
  readonly callTimeoutMs: number;
  readonly checksums: S3Settings['checksums'];
  /**
   * Makes a call with a signal that ends it at the time-out, and earlier if another signal says so. What it answers with, as the bytes of an
   * object, is not bound by that any more. Rejects with S3Error.
   */
  call<T>(send: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** Connects to nothing yet. */
export function createS3Bucket(settings: S3Settings): S3Bucket {
  const timeoutMs = settings.callTimeoutMs ?? CALL_TIMEOUT_MS;
  const client = createClient(settings, timeoutMs);
  const { publicEndpoint } = settings;
  const urlClient = publicEndpoint === undefined ? client : createClient({ ...settings, endpoint: publicEndpoint }, timeoutMs);
  return {
    client,
    urlClient,
    name: settings.bucket,
    callTimeoutMs: timeoutMs,
    checksums: settings.checksums,
    call: async (send, signal) => {
      const controller = new AbortController();
      const stop = () => controller.abort(signal?.reason);
      const timer = setTimeout(() => controller.abort(), timeoutMs);
      if (signal?.aborted) stop();
      signal?.addEventListener('abort', stop, { once: true });
      try {
        return await send(client, { abortSignal: controller.signal });
      } catch (err) {
        throw toS3Error(err, controller.signal.aborted && !signal?.aborted);
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
      }
    },
  };
}

function createClient(settings: S3Settings, timeoutMs: number): S3Client {
  const checksums = settings.checksums === 'when_supported' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  const { accessKeyId, secretAccessKey } = settings;
  // One attempt leaves time for another.
  const attemptTimeoutMs = Math.ceil(timeoutMs / 2);
  return new S3Client({
    region: settings.region,
    ...(settings.endpoint === undefined ? {} : { endpoint: settings.endpoint }),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    forcePathStyle: settings.forcePathStyle,
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    // With it, every part opens a connection of its own, and waits on servers that do not know it.
    expectContinueHeader: false,
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: attemptTimeoutMs,
      socketTimeout: attemptTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: CONNECTIONS_MAX },
      httpsAgent: { maxSockets: CONNECTIONS_MAX },
    },
  });
}
