import { type DescMessage, type DescMethodUnary, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type UnaryResponse } from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJsonBytes, trailerDemux } from '@connectrpc/connect/protocol-connect';
import type { LeanAnswer } from './lean-exchange.ts';

/**
 * Turns a whole answer into what a client expects. Headers are parsed when somebody looks at them.
 *
 * @throws ConnectError the error that the answer carries, or `internal` where it is no valid answer
 */
export function toResponse<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  answer: LeanAnswer,
): UnaryResponse<I, O> {
  const message = readMessage(method.output, answer);
  let demuxed: [Headers, Headers] | undefined;
  const demux = () => {
    demuxed ??= trailerDemux(toHeaders(answer));
    return demuxed;
  };
  return {
    stream: false,
    service: method.parent,
    method,
    message,
    get header() {
      return demux()[0];
    },
    get trailer() {
      return demux()[1];
    },
  };
}

/**
 * The message that a whole answer carries.
 *
 * @throws ConnectError the error that it carries instead, or `internal` where it is no valid answer
 */
export function readMessage<O extends DescMessage>(schema: O, answer: LeanAnswer): MessageShape<O> {
  if (answer.status !== 200) throw toError(answer);
  const contentType = answer.headers['content-type'];
  if (contentType !== 'application/proto') {
    throw new ConnectError(`unsupported content type ${contentType}`, Code.Internal, toHeaders(answer));
  }
  return parse(schema, answer.body);
}

function parse<O extends DescMessage>(schema: O, body: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(schema, body);
  } catch (err) {
    throw new ConnectError('the answer is no valid message', Code.Internal, undefined, undefined, err);
  }
}

/** The error that an answer which is no success carries. */
export function toError(answer: LeanAnswer): ConnectError {
  const [metadata, trailer] = trailerDemux(toHeaders(answer));
  trailer.forEach((value, name) => void metadata.append(name, value));
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
