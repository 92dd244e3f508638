import type { IncomingMessage, ServerResponse } from 'node:http';
import { fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { ensureRequestId } from '../../http/request.ts';
import type { Logger } from '../../log/logger.ts';
import { BATCH_TYPE, type BatchPart, decodeBatch, encodeBatch } from '../batch.ts';
import { readWhole, runCall } from '../call.ts';
import type { CallFacts, ResponseFacts } from '../client/batched-calls.ts';
import { MESSAGE_TYPE } from '../client/read-response.ts';
import { DEADLINES_MS } from '../deadlines.ts';
import { REQUEST_ID_HEADER } from '../route.ts';
import type { CallCounter } from './call-counter.ts';
import { encodeMessage, send, sendError, sendMessage } from './send-response.ts';
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
    const isKnown = contentType === MESSAGE_TYPE || contentType === BATCH_TYPE;
    if (!bound || !isKnown || encoding !== 'identity') return false;
    const rejection = (err: unknown, requestId: unknown) => {
      if (err instanceof ConnectError) return err;
      logger.error({ requestId, rpc: req.url?.slice(1), err }, 'rpc failed');
      return internalError();
    };
    const respond =
      contentType === BATCH_TYPE ? answerBatch(calls, bound, req, res, rejection) : answerCall(calls, bound, req, res);
    respond.catch((err: unknown) => sendError(res, rejection(err, req.headers[REQUEST_ID_HEADER])));
    return true;
  };
}

/** Public form of a failure; a defect is logged. */
type Rejection = (err: unknown, requestId: unknown) => ConnectError;

const callerGone = () => new ConnectError('the caller is gone', Code.Canceled);

async function answerCall(calls: CallCounter, bound: UnaryMethod, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const overload = calls.enter();
  if (overload) throw overload;
  let context: UnaryContext | undefined;
  res.on('close', () => {
    calls.leave();
    if (!res.writableFinished) context?.abort(callerGone());
  });
  const timeoutMs = parseTimeout(req.headers['connect-timeout-ms']);
  const call = new UnaryContext(bound.method, req.url as string, req.headers as Record<string, string>, timeoutMs);
  context = call;
  const output = await runCall({ signal: undefined, timeoutMs }, call, async () =>
    bound.invoke(parseMessage(bound.method, await readBody(req)), call, String(req.headers[REQUEST_ID_HEADER] ?? '')),
  );
  sendMessage(res, bound.method.output, output, call.setHeaders);
}

/** Runs each call of a batch as if it had been sent alone. */
async function answerBatch(
  calls: CallCounter,
  bound: UnaryMethod,
  req: IncomingMessage,
  res: ServerResponse,
  rejection: Rejection,
): Promise<void> {
  const contexts: UnaryContext[] = [];
  res.on('close', () => {
    if (!res.writableFinished) for (const context of contexts) context.abort(callerGone());
  });
  const parts = parseBatch(await readBody(req)).map(({ facts: { headers, timeoutMs }, message }) => {
    ensureRequestId({ headers });
    const context = new UnaryContext(bound.method, req.url as string, headers, Math.min(timeoutMs, DEADLINES_MS.longest));
    contexts.push(context);
    const requestId = headers[REQUEST_ID_HEADER] ?? '';
    return answerPart(calls, bound, context, message, requestId).catch((err: unknown) => ({
      facts: { isError: true },
      message: errorToJsonBytes(rejection(err, requestId), undefined),
    }));
  });
  send(res, BATCH_TYPE, encodeBatch(await Promise.all(parts)));
}

async function answerPart(
  calls: CallCounter,
  { method, invoke }: UnaryMethod,
  context: UnaryContext,
  message: Uint8Array,
  requestId: string,
): Promise<BatchPart<ResponseFacts>> {
  const overload = calls.enter();
  if (overload) throw overload;
  try {
    const limits = { signal: undefined, timeoutMs: context.timeoutMs() };
    const output = await runCall(limits, context, async () => invoke(parseMessage(method, message), context, requestId));
    return { facts: { isError: false }, message: encodeMessage(method.output, output) };
  } finally {
    calls.leave();
  }
}

function parseBatch(body: Buffer): BatchPart<CallFacts>[] {
  try {
    const parts = decodeBatch<CallFacts>(body);
    if (parts.every(({ facts }) => facts.timeoutMs > 0 && facts.headers instanceof Object)) return parts;
    throw new Error('a call without facts');
  } catch {
    throw new ConnectError('the request is not a valid batch', Code.InvalidArgument);
  }
}

/** The caller's deadline in milliseconds, at most what a server allows. */
function parseTimeout(value: string | string[] | undefined): number {
  if (value === undefined) return DEADLINES_MS.longest;
  if (typeof value !== 'string' || !/^\d{1,10}$/.test(value)) {
    throw new ConnectError('connect-timeout-ms must be up to ten digits', Code.InvalidArgument);
  }
  return Math.min(Number(value), DEADLINES_MS.longest);
}

const readBody = (req: IncomingMessage) =>
  readWhole(req, 'request', () => new ConnectError('the request was cut off', Code.Canceled));

function parseMessage(method: UnaryMethod['method'], body: Uint8Array): Message {
  try {
    return fromBinary(method.input, body);
  } catch {
    throw new ConnectError('the request is not a valid message', Code.InvalidArgument);
  }
}
