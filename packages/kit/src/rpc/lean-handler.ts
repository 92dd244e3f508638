import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import type { Logger } from '../logger.ts';
import { type BoundMethod, internalError } from './bound-method.ts';
import { withinBounds } from './call-bounds.ts';
import type { CallCounter } from './call-counter.ts';
import { type CredentialCheck, unauthenticated } from './credentials.ts';
import { invokeIntercepted } from './direct-transport.ts';
import { isLean, parseMessage, parseTimeout, readBody } from './lean-request.ts';
import { sendError, sendMessage } from './lean-response.ts';
import { REQUEST_ID_HEADER } from './route.ts';
import { UnaryContext } from './unary-context.ts';

/** Settings of the lean handler. */
export interface LeanHandlerOptions {
  readonly methods: ReadonlyMap<string, BoundMethod>;
  readonly checkCredential: CredentialCheck;
  readonly logger: Logger;
  readonly calls: CallCounter;
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
    if (options.checkCredential(req.headers.authorization, req.socket.remoteAddress)) answer(options, bound, req, res);
    else sendError(res, unauthenticated());
    return true;
  };
}

function answer(options: LeanHandlerOptions, bound: BoundMethod, req: IncomingMessage, res: ServerResponse): void {
  const requestId = String(req.headers[REQUEST_ID_HEADER] ?? '');
  let context: UnaryContext | undefined;
  try {
    options.calls.enter();
  } catch (err) {
    sendError(res, err as ConnectError);
    return;
  }
  res.on('close', () => {
    options.calls.leave();
    if (!res.writableFinished) context?.abort(new ConnectError('the caller is gone', Code.Canceled));
  });
  const respond = async () => {
    const timeoutMs = parseTimeout(req.headers['connect-timeout-ms']);
    const call = new UnaryContext(bound.method, bound.path, req.headers as Record<string, string>, timeoutMs);
    context = call;
    const output = await withinBounds({ signal: undefined, timeoutMs }, call, () => run(options, bound, req, call, requestId));
    sendMessage(res, bound.method.output, output, call);
  };
  respond().catch((err: unknown) => {
    const expected = err instanceof ConnectError;
    if (!expected) options.logger.error({ requestId, rpc: bound.path.slice(1), err }, 'rpc failed');
    sendError(res, expected ? err : internalError(), context);
  });
}

async function run(
  { interceptors = [] }: LeanHandlerOptions,
  bound: BoundMethod,
  req: IncomingMessage,
  context: UnaryContext,
  requestId: string,
): Promise<Message> {
  const input = parseMessage(bound.method, await readBody(req));
  return interceptors.length === 0
    ? bound.invoke(input, context, requestId)
    : invokeIntercepted(interceptors, bound, input, context);
}
