import { type DescMethodUnary, fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';
import DataLoader from 'dataloader';
import { BATCH_CALLS_MAX, BATCH_TYPE, type BatchPart, decodeBatch, encodeBatch } from '../batch.ts';
import { canceled, type HeaderSource } from '../call.ts';
import { readBody } from './read-response.ts';
import { serialize, type UnaryCall } from './unary-call.ts';

/** Facts of each call for the server. */
export interface CallFacts {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Facts of each response: whether it is a message, or an error in JSON. */
export interface ResponseFacts {
  readonly isError: boolean;
}

interface BatchedCall extends BatchPart<CallFacts> {
  isCanceled: boolean;
  cancel(reason: unknown): void;
}

/**
 * Sends the calls of one turn of the event loop to one method in one request, for methods that read
 * a few rows by an index: each response arrives with the slowest of its batch. A canceled call is
 * not sent, or its response is ignored; the request is aborted once all its calls are canceled.
 */
export function createBatchedCalls(createRequest: (timeoutMs: number) => UnaryCall) {
  const loaders = new Map<DescMethodUnary, DataLoader<BatchedCall, Message>>();
  const createLoader = (method: DescMethodUnary) => {
    const send = async (all: readonly BatchedCall[]) => {
      const calls = all.filter(({ isCanceled }) => !isCanceled);
      if (calls.length === 0) return all.map(canceled);
      const request = createRequest(Math.max(...calls.map(({ facts }) => facts.timeoutMs)));
      const open = new Set(calls);
      for (const call of calls) call.cancel = (reason) => open.delete(call) && open.size === 0 && request.abort(reason);
      const body = readBody(await request.send(method, encodeBatch(calls), {}, BATCH_TYPE), BATCH_TYPE);
      const responses = decodeBatch<ResponseFacts>(body);
      const outputs = new Map(calls.map((call, i) => [call, readPart(method, responses[i])]));
      return all.map((call) => outputs.get(call) ?? canceled());
    };
    const options = { cache: false, maxBatchSize: BATCH_CALLS_MAX, batchScheduleFn: setImmediate };
    const loader = new DataLoader<BatchedCall, Message>(send, options);
    loaders.set(method, loader);
    return loader;
  };
  /** A call. `send` rejects with a ConnectError: that of the call, or of its request. */
  return (method: DescMethodUnary, message: Message, header: HeaderSource, timeoutMs: number) => {
    const call: BatchedCall = {
      facts: { headers: Object.fromEntries(new Headers(header)), timeoutMs },
      message: serialize(method, message),
      isCanceled: false,
      cancel() {
        this.isCanceled = true;
      },
    };
    return {
      send: () => (loaders.get(method) ?? createLoader(method)).load(call),
      abort: (reason?: unknown) => reason !== undefined && call.cancel(reason),
    };
  };
}

function readPart(method: DescMethodUnary, response: BatchPart<ResponseFacts> | undefined): Message | ConnectError {
  if (response?.facts.isError === false) return fromBinary(method.output, response.message);
  const malformed = new ConnectError('the response is not a valid batch', Code.Internal);
  return response ? errorFromJsonBytes(response.message, undefined, malformed) : malformed;
}
