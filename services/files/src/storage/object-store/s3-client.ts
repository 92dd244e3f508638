import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import {
  type $Command,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import type { FilesConfig } from '../../config.ts';

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
/** Largest response in XML, which is read as a whole. A page of 1,000 keys takes less. */
const XML_BYTES_MAX = 8 * 1024 * 1024;
/** Error name of a stalled request. The AWS SDK does not retry a request that fails with it. */
export const STALLED = 'StalledError';

/** Longest pause within a response, in milliseconds, as its reader may pause. */
const RESPONSE_PAUSE_MS_MAX = 15_000;

/** Without a key, the library uses the environment, shared files, or a role. */
export type S3Settings = Pick<FilesConfig, Extract<keyof FilesConfig, `S3_${string}`>>;

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

export function createS3Bucket(settings: S3Settings, stallMs = STALL_MS): S3Bucket {
  const client = createClient(settings, settings.S3_ENDPOINT, stallMs);
  const { S3_PUBLIC_ENDPOINT } = settings;
  return {
    client,
    urlClient: S3_PUBLIC_ENDPOINT === undefined ? client : createClient(settings, S3_PUBLIC_ENDPOINT, stallMs),
    name: settings.S3_BUCKET as string,
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

function createClient(settings: S3Settings, endpoint: string | undefined, stallMs: number): S3Client {
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = settings;
  const client = new S3Client({
    region: settings.S3_REGION,
    ...(endpoint !== undefined && { endpoint }),
    ...(accessKeyId && secretAccessKey && { credentials: { accessKeyId, secretAccessKey } }),
    forcePathStyle: settings.S3_FORCE_PATH_STYLE === 'true',
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
      ...createStallAgents(stallMs),
    },
  });
  limitXml(client);
  return client;
}

/** Limits what the library reads into memory: all but the bytes of an object. */
function limitXml({ middlewareStack }: S3Client): void {
  middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; body: Readable };
        const isObject = commandName === 'GetObjectCommand' && response.statusCode < 300;
        if (!isObject) response.body = Readable.from(limitBytes(response.body), { objectMode: false });
        return result;
      },
    { step: 'deserialize', priority: 'low' },
  );
}

async function* limitBytes(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let byteSize = 0;
  for await (const chunk of body) {
    byteSize += chunk.byteLength;
    if (byteSize > XML_BYTES_MAX) throw new Error(`the response is larger than ${XML_BYTES_MAX} bytes`);
    yield chunk;
  }
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

/**
 * Agents that end a request on whose connection no byte has moved for `stallMs`, until the response
 * begins. A slow request goes on: the limits of the AWS SDK count either the whole request, or half
 * of the time set for silence.
 */
function createStallAgents(stallMs: number) {
  const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
  const httpAgent = watchConnections(new HttpAgent(options), stallMs);
  return { httpAgent, httpsAgent: watchConnections(new HttpsAgent(options), stallMs) };
}

function watchConnections<A extends HttpAgent>(agent: A, stallMs: number): A {
  const begins = new WeakMap<Duplex, () => void>();
  const createConnection = agent.createConnection.bind(agent);
  agent.createConnection = (...args: Parameters<typeof createConnection>) => {
    const socket = createConnection(...args);
    if (socket) {
      const begin = watchSocket(socket as Socket, stallMs);
      begins.set(socket, begin);
      begin();
    }
    return socket;
  };
  const reuseSocket = agent.reuseSocket.bind(agent);
  agent.reuseSocket = (socket, request) => {
    reuseSocket(socket, request);
    begins.get(socket)?.();
  };
  return agent;
}

/** Watches a connection. Returns a function to call as each of its requests begins. */
export function watchSocket(socket: Socket, stallMs: number): () => void {
  const stepMs = stallMs / 2;
  let bytesReadBefore = 0;
  let bytesReadAtPause = -1;
  socket.on('timeout', () => {
    const { connecting, bytesRead, writableLength } = socket;
    // Node reports silence while it writes only after the kernel took no byte between two checks.
    const isSending = !connecting && writableLength > 0;
    if (isSending || bytesRead === bytesReadAtPause) {
      socket.destroy(Object.assign(new Error('no byte moved'), { name: STALLED }));
      return;
    }
    bytesReadAtPause = bytesRead;
    socket.setTimeout(bytesRead > bytesReadBefore ? RESPONSE_PAUSE_MS_MAX : stepMs);
  });
  return () => {
    bytesReadBefore = socket.bytesRead;
    bytesReadAtPause = -1;
    socket.setTimeout(stepMs);
  };
}
