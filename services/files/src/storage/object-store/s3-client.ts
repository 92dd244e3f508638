import { S3Client } from '@aws-sdk/client-s3';
import { createStallAgents } from './s3-agents.ts';
import { toS3Error } from './s3-error.ts';

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

/** How to reach a bucket. */
export interface S3Settings {
  /** Absent for Amazon's own. */
  readonly endpoint?: string | undefined;
  /** Where clients reach the same server, for their URLs. The endpoint unless set. */
  readonly publicEndpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /**
   * Without a key, the library looks in the environment, shared files, and the machine's or the
   * pod's role.
   */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle: boolean;
  /** Longest time without a byte until a response begins, in milliseconds; 4,500 by default. */
  readonly stallMs?: number | undefined;
}

/** A bucket, and calls to it that end. */
export interface S3Bucket {
  readonly client: S3Client;
  /** Signs the URLs for clients, and sends nothing: a signature includes the host. */
  readonly urlClient: S3Client;
  readonly name: string;
  /**
   * Makes a call that ends when the store stalls, and when the caller's signal aborts; without a
   * signal, after 30 s, the body of the response aside. Rejects with S3Error.
   */
  call<T>(send: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** Connects to nothing yet. */
export function createS3Bucket(settings: S3Settings): S3Bucket {
  const client = createClient(settings);
  const { publicEndpoint } = settings;
  const urlClient = publicEndpoint === undefined ? client : createClient({ ...settings, endpoint: publicEndpoint });
  return {
    client,
    urlClient,
    name: settings.bucket,
    call: async (send, signal) => {
      const late = new AbortController();
      const timer = signal ? undefined : setTimeout(() => late.abort(), CALL_TIMEOUT_MS);
      try {
        return await send(client, { abortSignal: signal ?? late.signal });
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
