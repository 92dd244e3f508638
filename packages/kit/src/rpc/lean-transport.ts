import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import {
  Code,
  ConnectError,
  createContextValues,
  type Interceptor,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJsonBytes, trailerDemux } from '@connectrpc/connect/protocol-connect';
import { Pool } from 'undici';
import { methodPath } from './bound-method.ts';
import { canceled } from './call-bounds.ts';
import { type LeanAnswer, sendLean } from './lean-exchange.ts';
import { DEADLINE_MS_MAX } from './route.ts';
import type { HeaderSource } from './unary-context.ts';

/** How to reach a service. */
export interface LeanTransportOptions {
  /** `http://host:port` of the service. */
  readonly baseUrl: string;
  /** Value of the `Authorization` header on every call. */
  readonly authorization: string;
  /** Carries what is not unary. */
  readonly fallback: Transport;
  /** Most connections. 16 unless set: more were slower. */
  readonly connections?: number;
  /** Applied in order around each unary call. None unless set. */
  readonly interceptors?: readonly Interceptor[];
}

/** A transport that holds connections. */
export interface ClosableTransport extends Transport {
  /** Ends the connections once the calls under way have ended. */
  close(): Promise<void>;
}

interface Call {
  readonly method: DescMethodUnary;
  readonly message: Message;
  readonly header: HeaderSource;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Speaks unary Connect in binary over an HTTP/1.1 pool: one POST with a few headers
 * (https://connectrpc.com/docs/protocol#unary-request). A canceled call costs its connection and nothing else. A call of a method
 * without side effects that got no answer at all is tried once more; no other is.
 */
export function createLeanTransport(options: LeanTransportOptions): ClosableTransport {
  const pool = new Pool(options.baseUrl, {
    connections: options.connections ?? 16,
    connect: { timeout: 2_000 },
    pipelining: 1,
    keepAliveTimeout: 30_000,
    headersTimeout: DEADLINE_MS_MAX,
    bodyTimeout: DEADLINE_MS_MAX,
  });
  const call = (given: Call) =>
    callOnce(pool, options.authorization, given).catch((err: unknown) => retry(pool, options, given, err));
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      if (signal?.aborted) throw canceled();
      const message = '$typeName' in input ? (input as Message) : create(method.input as DescMessage, input);
      const given = { method, message, header, timeoutMs: timeoutMs ?? DEADLINE_MS_MAX, signal };
      if (!options.interceptors?.length) return toResponse(method, await call(given));
      const base = {
        stream: false as const,
        service: method.parent,
        method,
        requestMethod: 'POST',
        url: options.baseUrl + methodPath(method),
      };
      const request = {
        ...base,
        signal: signal ?? new AbortController().signal,
        header: new Headers(header),
        contextValues: values ?? createContextValues(),
        message,
      } as UnaryRequest;
      const innermost = (async (req: UnaryRequest) =>
        toResponse(req.method, await call({ ...given, header: req.header, message: req.message }))) as ReturnType<Interceptor>;
      const outermost = options.interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
      return (await outermost(request)) as UnaryResponse<typeof method.input, typeof method.output>;
    },
    stream: (...args) => options.fallback.stream(...args),
    close: () => pool.close(),
  };
}

/** Raised where no byte of an answer came, so that a read may be tried again. */
const isUnanswered = (err: unknown) => err instanceof ConnectError && err.code === Code.Unavailable && !err.isWireError;

function retry(pool: Pool, options: LeanTransportOptions, given: Call, err: unknown): Promise<LeanAnswer> {
  const safe = given.method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  if (!safe || !isUnanswered(err) || given.signal?.aborted) throw err;
  return callOnce(pool, options.authorization, given);
}

async function callOnce(pool: Pool, authorization: string, given: Call): Promise<LeanAnswer> {
  const { method, message, header, timeoutMs, signal } = given;
  const headers = [
    'content-type',
    'application/proto',
    'connect-protocol-version',
    '1',
    'connect-timeout-ms',
    String(timeoutMs),
    'authorization',
    authorization,
  ];
  appendHeaders(headers, header);
  const answer = await sendLean(pool, {
    path: methodPath(method),
    headers,
    body: toBinary(method.input, message),
    timeoutMs,
    signal,
  });
  if (answer.status !== 200) throw toError(answer);
  if (answer.headers['content-type'] !== 'application/proto') {
    throw new ConnectError(`unexpected content type ${answer.headers['content-type']}`, Code.Internal);
  }
  return answer;
}

function appendHeaders(headers: string[], given: HeaderSource): void {
  if (given === undefined) return;
  const pairs = Array.isArray(given) || given instanceof Headers ? new Headers(given).entries() : Object.entries(given);
  for (const [name, value] of pairs) headers.push(name, String(value));
}

function toError(answer: LeanAnswer): ConnectError {
  const metadata = toHeaders(answer);
  const fallback = new ConnectError(`HTTP ${answer.status}`, codeFromHttpStatus(answer.status), metadata);
  fallback.isWireError = true;
  if (!String(answer.headers['content-type']).startsWith('application/json')) return fallback;
  try {
    return errorFromJsonBytes(answer.body, metadata, fallback);
  } catch {
    return fallback;
  }
}

function toHeaders(answer: LeanAnswer): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const item of [value].flat()) if (item !== undefined) headers.append(name, item);
  }
  return headers;
}

function toResponse<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  answer: LeanAnswer,
): UnaryResponse<I, O> {
  let demuxed: [Headers, Headers] | undefined;
  const demux = () => {
    demuxed ??= trailerDemux(toHeaders(answer));
    return demuxed;
  };
  return {
    stream: false,
    service: method.parent,
    method,
    message: fromBinary(method.output, answer.body) as MessageShape<O>,
    get header() {
      return demux()[0];
    },
    get trailer() {
      return demux()[1];
    },
  };
}
