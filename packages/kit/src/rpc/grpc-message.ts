import type { OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** What has to be encoded: all but printable ASCII, and the sign that begins an encoded byte. */
const UNPRINTABLE = /[^\x20-\x24\x26-\x7e]+/gu;

/**
 * Has an answer carry the message of its error as gRPC asks for (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses).
 * connect-node encodes commas and colons too, and grpc-js leaves them so: its users would read `%2C`.
 */
export function keepMessageReadable(res: Http2ServerResponse): void {
  const addTrailers = res.addTrailers.bind(res);
  res.addTrailers = (trailers: OutgoingHttpHeaders) => {
    const message = trailers['grpc-message'];
    addTrailers(typeof message === 'string' ? { ...trailers, 'grpc-message': readable(message) } : trailers);
  };
}

function readable(message: string): string {
  return decodeURIComponent(message).replace(UNPRINTABLE, encodeURIComponent);
}
