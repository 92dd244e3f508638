import type { IncomingHttpHeaders } from 'node:http';
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';

export interface WholeResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

export const MESSAGE_TYPE = 'application/proto';

/**
 * The body of a response.
 *
 * @throws ConnectError the error that it contains instead; for another type `internal`, or
 *   `unknown` if Connect has no such type
 */
export function readBody({ status, headers, body }: WholeResponse, expectedType: string): Uint8Array {
  const contentType = headers['content-type'];
  if (status !== 200) {
    const error = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
    throw contentType?.startsWith('application/json') ? errorFromJsonBytes(body, undefined, error) : error;
  }
  if (contentType !== expectedType) {
    const code = /^application\/(json|proto)\b/.test(contentType ?? '') ? Code.Internal : Code.Unknown;
    throw new ConnectError(`unsupported content type ${contentType}`, code);
  }
  return body;
}

/**
 * The message of a response.
 *
 * @throws ConnectError the error that it contains instead, or `internal` if it is malformed
 */
export function readMessage<O extends DescMessage>(schema: O, response: WholeResponse): MessageShape<O> {
  const body = readBody(response, MESSAGE_TYPE);
  try {
    return fromBinary(schema, body);
  } catch (err) {
    throw new ConnectError('the response is not a valid message', Code.Internal, undefined, undefined, err);
  }
}
