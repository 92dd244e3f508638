import type { IncomingMessage, ServerResponse } from 'node:http';
import { fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Logger } from '../../log/logger.ts';
import { runCall, tooLarge } from '../call.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, REQUEST_ID_HEADER } from '../route.ts';
import type { CallCounter } from './call-counter.ts';
import { sendError, sendMessage } from './send-response.ts';
import { UnaryContext } from './unary-context.ts';
import { internalError, type UnaryMethod } from './unary-method.ts';

/**
 * Answers unary calls of the Connect protocol in binary over HTTP/1.1
 * (https://connectrpc.com/docs/protocol#unary-request) at a third of connect-node's cost. The
 * credential has been checked.
 *
 * @returns a listener that returns false for a request that connect-node must answer
 */
export function createUnaryHandler(methods: ReadonlyMap<string, UnaryMethod>, calls: CallCounter, logger: Logger) {
  return (req: IncomingMessage, res: ServerResponse): boolean => {
    const bound = req.method === 'POST' ? methods.get(req.url ?? '') : undefined;
    const { 'content-type': contentType, 'content-encoding': encoding = 'identity' } = req.headers;
    if (!bound || contentType !== 'application/proto' || encoding !== 'identity') return false;
    answer(calls, logger, bound, req, res);
    return true;
  };
}

function answer(calls: CallCounter, logger: Logger, bound: UnaryMethod, req: IncomingMessage, res: ServerResponse): void {
  const overload = calls.enter();
  if (overload) {
    sendError(res, overload);
    return;
  }
  const path = req.url as string;
  const requestId = String(req.headers[REQUEST_ID_HEADER] ?? '');
  let context: UnaryContext | undefined;
  res.on('close', () => {
    calls.leave();
    if (!res.writableFinished) context?.abort(new ConnectError('the caller is gone', Code.Canceled));
  });
  const respond = async () => {
    const timeoutMs = parseTimeout(req.headers['connect-timeout-ms']);
    const call = new UnaryContext(bound.method, path, req.headers as Record<string, string>, timeoutMs);
    context = call;
    const output = await runCall({ signal: undefined, timeoutMs }, call, async () =>
      bound.invoke(parseMessage(bound.method, await readBody(req)), call, requestId),
    );
    sendMessage(res, bound.method.output, output);
  };
  respond().catch((err: unknown) => {
    const isExpected = err instanceof ConnectError;
    if (!isExpected) logger.error({ requestId, rpc: path.slice(1), err }, 'rpc failed');
    sendError(res, isExpected ? err : internalError());
  });
}

/** The caller's deadline in milliseconds, at most what a server allows. */
function parseTimeout(value: string | string[] | undefined): number {
  if (value === undefined) return DEADLINE_MS_MAX;
  if (typeof value !== 'string' || !/^\d{1,10}$/.test(value)) {
    throw new ConnectError('connect-timeout-ms must be up to ten digits', Code.InvalidArgument);
  }
  return Math.min(Number(value), DEADLINE_MS_MAX);
}

/** Reads the whole body, of which nothing is stored beyond the limit. */
function readBody(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > MESSAGE_BYTES_MAX) return Promise.reject(tooLarge('request'));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size <= MESSAGE_BYTES_MAX) chunks.push(chunk);
      else {
        chunks.length = 0;
        reject(tooLarge('request'));
      }
    });
    req.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    req.on('error', () => reject(new ConnectError('the request was cut off', Code.Canceled)));
  });
}

function parseMessage(method: UnaryMethod['method'], body: Buffer): Message {
  try {
    return fromBinary(method.input, body);
  } catch {
    throw new ConnectError('the request is no valid message', Code.InvalidArgument);
  }
}
