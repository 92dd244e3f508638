import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
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
    // The stream has to end with its headers, or grpc-js looks for the status in trailers: so they may go no sooner.
    for (const [name, value] of Object.entries(headers)) answer.setHeader(name, value);
    answer.end();
    // A client that is still sending may stop.
    if (res instanceof Http2ServerResponse) res.stream.close();
    return;
  }
  const body = errorToJsonBytes(error, undefined);
  answer.writeHead(status, { 'content-type': 'application/json', 'content-length': body.byteLength }).end(body);
}

/** Which clients of Connect take for an unimplemented method as well. */
const NOT_FOUND = 404;

/** Answers a request for a method that there is not. */
export function refuseUnknown(req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse): void {
  sendRefusal(req, res, new ConnectError('there is no such method', Code.Unimplemented), NOT_FOUND);
}
