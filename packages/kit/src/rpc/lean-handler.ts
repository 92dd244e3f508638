import type { IncomingMessage, ServerResponse } from 'node:http';
import { fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, type Interceptor, type UnaryRequest } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import type { BoundMethod } from './bound-method.ts';
import { withinBounds } from './call-bounds.ts';
import { type CredentialCheck, unauthenticated } from './credentials.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, REQUEST_ID_HEADER } from './route.ts';
import { UnaryContext } from './unary-context.ts';

/** Settings of the lean handler. */
export interface LeanHandlerOptions {
  readonly methods: ReadonlyMap<string, BoundMethod>;
  readonly checkCredential: CredentialCheck;
  /** Applied in order around each call. None unless set. */
  readonly interceptors?: readonly Interceptor[];
}

/**
 * Answers unary calls of the Connect protocol in binary over HTTP/1.1 (https://connectrpc.com/docs/protocol#unary-request), without the
 * machinery that streams, compression and JSON need.
 *
 * @returns a listener that answers true when it took the request, and false when it must be handed to connect-node's adapter
 */
export function createLeanHandler(options: LeanHandlerOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    const bound = req.method === 'POST' ? options.methods.get(req.url ?? '') : undefined;
    if (!bound || !isLean(req)) return false;
    if (!options.checkCredential(req.headers.authorization)) {
      res.shouldKeepAlive = false;
      sendError(res, unauthenticated());
      return true;
    }
    respond(options, bound, req, res).catch((err: unknown) => sendError(res, err));
    return true;
  };
}

function isLean(req: IncomingMessage): boolean {
  const { headers } = req;
  return headers['content-type'] === 'application/proto' && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function respond(
  options: LeanHandlerOptions,
  bound: BoundMethod,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const timeoutMs = parseTimeout(req.headers['connect-timeout-ms']);
  const { method } = bound;
  const context = new UnaryContext(method, req.url ?? '', req.headers as Record<string, string>, timeoutMs);
  res.on('close', () => {
    if (!res.writableFinished) context.abort(new ConnectError('the caller is gone', Code.Canceled));
  });
  const requestId = String(req.headers[REQUEST_ID_HEADER] ?? '');
  const output = await withinBounds({ signal: undefined, timeoutMs }, context, async () => {
    const input = parse(method, await readBody(req));
    return options.interceptors?.length
      ? intercept(options.interceptors, bound, input, context, requestId)
      : bound.invoke(input, context, requestId);
  });
  const body = toBinary(method.output, output);
  if (body.byteLength > MESSAGE_BYTES_MAX) throw tooLarge('answer');
  res.writeHead(200, responseHeaders(context, 'application/proto', body.byteLength));
  res.end(body);
}

function parse(method: BoundMethod['method'], body: Buffer): Message {
  try {
    return fromBinary(method.input, body);
  } catch {
    throw new ConnectError('the request is no valid message', Code.InvalidArgument);
  }
}

/** Runs the interceptors the way connect-node does, on a request object made for them. */
async function intercept(
  interceptors: readonly Interceptor[],
  bound: BoundMethod,
  message: Message,
  context: UnaryContext,
  requestId: string,
): Promise<Message> {
  const { method } = bound;
  const request: UnaryRequest = {
    stream: false,
    service: method.parent,
    method,
    requestMethod: 'POST',
    url: context.url,
    signal: context.signal,
    header: context.requestHeader,
    contextValues: context.values,
    message,
  };
  const call = interceptors.reduceRight((next, interceptor) => interceptor(next), (async (req: UnaryRequest) => ({
    stream: false as const,
    service: method.parent,
    method,
    message: await bound.invoke(req.message, context, requestId),
    header: context.responseHeader,
    trailer: context.responseTrailer,
  })) as ReturnType<Interceptor>);
  return (await call(request)).message as Message;
}

/** Reads the whole body, and stops at the limit whether or not a length was declared. */
function readBody(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > MESSAGE_BYTES_MAX) return Promise.reject(tooLarge('request'));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size > MESSAGE_BYTES_MAX) {
        req.removeAllListeners('data').resume();
        reject(tooLarge('request'));
      } else chunks.push(chunk);
    });
    req.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    req.on('error', () => reject(new ConnectError('the request was cut off', Code.Canceled)));
  });
}

function parseTimeout(value: string | string[] | undefined): number {
  if (value === undefined) return DEADLINE_MS_MAX;
  if (typeof value !== 'string' || !/^\d{1,10}$/.test(value)) {
    throw new ConnectError('connect-timeout-ms must be up to ten digits', Code.InvalidArgument);
  }
  return Math.min(Number(value), DEADLINE_MS_MAX);
}

function tooLarge(what: string): ConnectError {
  return new ConnectError(`the ${what} is larger than ${MESSAGE_BYTES_MAX} bytes`, Code.ResourceExhausted);
}

function responseHeaders(context: UnaryContext, contentType: string, length: number): string[] {
  const headers = ['content-type', contentType, 'content-length', String(length)];
  context.writtenHeader?.forEach((value, name) => {
    headers.push(name, value);
  });
  context.writtenTrailer?.forEach((value, name) => {
    headers.push(`trailer-${name}`, value);
  });
  return headers;
}

function sendError(res: ServerResponse, err: unknown): void {
  if (res.headersSent || res.destroyed) return;
  const error = err instanceof ConnectError ? err : new ConnectError('internal error', Code.Internal);
  const body = errorToJsonBytes(error, undefined);
  const headers = ['content-type', 'application/json', 'content-length', String(body.byteLength)];
  if (!error.isWireError) {
    error.metadata.forEach((value, name) => {
      headers.push(name, value);
    });
  }
  if (!res.req.complete) res.shouldKeepAlive = false;
  res.writeHead(codeToHttpStatus(error.code), headers);
  res.end(body);
}
