import { setImmediate as nextTurn } from 'node:timers/promises';
import { type DescMethodUnary, fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';
import { BATCH_CALLS_MAX, BATCH_TYPE, type BatchPart, decodeBatch, encodeBatch } from '../batch.ts';
import type { HeaderSource } from '../call.ts';
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

type CallPart = BatchPart<CallFacts>;

interface Batch {
  /** Calls that have not been canceled. */
  readonly calls: Set<CallPart>;
  readonly responses: Promise<ReadonlyMap<CallPart, BatchPart<ResponseFacts> | undefined>>;
  request?: UnaryCall;
}

/**
 * Sends the calls of one turn of the event loop to one method in one request, for methods that read
 * a few rows by an index: each response arrives with the slowest of its batch. A canceled call is
 * not sent, or its response is ignored; the request is aborted once all its calls are canceled.
 */
export function createBatchedCalls(createRequest: (timeoutMs: number) => UnaryCall) {
  const open = new Map<DescMethodUnary, Batch>();
  const begin = (method: DescMethodUnary): Batch => {
    const calls = new Set<CallPart>();
    const send = async () => {
      await nextTurn();
      if (open.get(method) === batch) open.delete(method);
      const sent = [...calls];
      if (sent.length === 0) return new Map();
      batch.request = createRequest(Math.max(...sent.map(({ facts }) => facts.timeoutMs)));
      const body = readBody(await batch.request.send(method, encodeBatch(sent), {}, BATCH_TYPE), BATCH_TYPE);
      const responses = decodeBatch<ResponseFacts>(body);
      return new Map(sent.map((call, i) => [call, responses[i]]));
    };
    const batch: Batch = { calls, responses: send() };
    // Its calls may all have been canceled.
    batch.responses.catch(() => undefined);
    open.set(method, batch);
    return batch;
  };
  /** Adds a call. `receive` rejects with a ConnectError: that of the call, or of its request. */
  return (method: DescMethodUnary, message: Message, header: HeaderSource, timeoutMs: number) => {
    const batch = open.get(method) ?? begin(method);
    const headers = Object.fromEntries(new Headers(header));
    const call = { facts: { headers, timeoutMs }, message: serialize(method, message) };
    batch.calls.add(call);
    if (batch.calls.size === BATCH_CALLS_MAX) open.delete(method);
    return {
      receive: async () => readPart(method, (await batch.responses).get(call)),
      abort: (reason?: unknown) => {
        if (reason !== undefined && batch.calls.delete(call) && batch.calls.size === 0) batch.request?.abort(reason);
      },
    };
  };
}

function readPart(method: DescMethodUnary, response: BatchPart<ResponseFacts> | undefined): Message {
  const malformed = new ConnectError('the response is not a valid batch', Code.Internal);
  if (!response) throw malformed;
  if (response.facts.isError) throw errorFromJsonBytes(response.message, undefined, malformed);
  return fromBinary(method.output, response.message);
}
