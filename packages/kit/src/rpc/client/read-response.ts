import type { IncomingHttpHeaders } from 'node:http';
import { type DescMessage, type DescMethodUnary, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type UnaryResponse } from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJsonBytes, trailerDemux } from '@connectrpc/connect/protocol-connect';

/** An HTTP response, read to its end. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/** A client's response, whose headers are parsed on demand. Throws as {@link readMessage}. */
export function toUnaryResponse<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  response: WholeResponse,
): UnaryResponse<I, O> {
  return {
    stream: false,
    service: method.parent,
    method,
    message: readMessage(method.output, response),
    get header() {
      return trailerDemux(toHeaders(response))[0];
    },
    get trailer() {
      return trailerDemux(toHeaders(response))[1];
    },
  };
}

/**
 * The message of a whole response.
 *
 * @throws ConnectError the error that it contains instead, or `internal` if it is malformed
 */
export function readMessage<O extends DescMessage>(schema: O, response: WholeResponse): MessageShape<O> {
  if (response.status !== 200) throw toError(response);
  const contentType = response.headers['content-type'];
  if (contentType !== 'application/proto') {
    throw new ConnectError(`unsupported content type ${contentType}`, Code.Internal, toHeaders(response));
  }
  try {
    return fromBinary(schema, response.body);
  } catch (err) {
    throw new ConnectError('the response is no valid message', Code.Internal, undefined, undefined, err);
  }
}

function toError(response: WholeResponse): ConnectError {
  const [metadata, trailer] = trailerDemux(toHeaders(response));
  trailer.forEach((value, name) => void metadata.append(name, value));
  const fallback = new ConnectError(`HTTP ${response.status}`, codeFromHttpStatus(response.status), metadata);
  fallback.isWireError = true;
  if (!String(response.headers['content-type']).startsWith('application/json')) return fallback;
  try {
    return errorFromJsonBytes(response.body, metadata, fallback);
  } catch {
    return fallback;
  }
}

function toHeaders(response: WholeResponse): Headers {
  const pairs = Object.entries(response.headers).flatMap(([name, value = []]) => [value].flat().map((item) => [name, item]));
  return new Headers(pairs as Array<[string, string]>);
}
