import type { IncomingHttpHeaders } from 'node:http';
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';

/** An HTTP response, read to its end. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/**
 * The message of a response.
 *
 * @throws ConnectError the error that it contains instead, or `internal` if it is malformed
 */
export function readMessage<O extends DescMessage>(schema: O, { status, headers, body }: WholeResponse): MessageShape<O> {
  const contentType = headers['content-type'];
  if (status !== 200) {
    const error = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
    throw contentType?.startsWith('application/json') ? errorFromJsonBytes(body, undefined, error) : error;
  }
  if (contentType !== 'application/proto') throw new ConnectError(`unsupported content type ${contentType}`, Code.Internal);
  try {
    return fromBinary(schema, body);
  } catch (err) {
    throw new ConnectError('the response is no valid message', Code.Internal, undefined, undefined, err);
  }
}
