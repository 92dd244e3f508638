import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
} from '@connectrpc/connect';
import { createAsyncIterable, type UniversalHandler } from '@connectrpc/connect/protocol';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';

const isParsed = createContextKey(false);

/** Marks a call whose message was parsed; connect-node runs interceptors after that. */
export const markParsed: Interceptor = (next) => (req) => {
  req.contextValues.set(isParsed, true);
  return next(req);
};

/**
 * Makes connect-node answer a malformed message with 400, as the Connect protocol has it: a 500
 * before the message was parsed is the caller's error. gRPC has `internal` for both.
 */
export function rejectMalformed({ handlers }: ConnectRouter): void {
  for (const [i, handler] of handlers.entries()) {
    const answer = async (...[req]: Parameters<UniversalHandler>) => {
      const contextValues = createContextValues();
      const response = await handler({ ...req, contextValues });
      if (response.status !== 500 || contextValues.get(isParsed)) return response;
      const error = new ConnectError('the request is not a valid message', Code.InvalidArgument);
      const header = new Headers({ 'content-type': 'application/json' });
      return { status: 400, header, body: createAsyncIterable([errorToJsonBytes(error, undefined)]) };
    };
    handlers[i] = Object.assign(answer, handler);
  }
}
