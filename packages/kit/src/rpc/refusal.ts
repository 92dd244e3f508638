import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';

/**
 * Answers a request that no handler comes to, as its protocol has errors: gRPC and gRPC-Web by their type, and all others as Connect.
 *
 * @param status of HTTP, for Connect; that of the error's code unless given
 */
export function sendRefusal(
  req: IncomingMessage | Http2ServerRequest,
  res: ServerResponse | Http2ServerResponse,
  error: ConnectError,
  status = codeToHttpStatus(error.code),
): void {
  const contentType = req.headers['content-type'];
  const answer = res as ServerResponse;
  if (contentType?.startsWith('application/grpc')) {
    const headers = { 'content-type': contentType, 'grpc-status': String(error.code), 'grpc-message': error.rawMessage };
    answer.writeHead(200, headers).end();
    return;
  }
  const body = errorToJsonBytes(error, undefined);
  answer.writeHead(status, { 'content-type': 'application/json', 'content-length': body.byteLength }).end(body);
}
