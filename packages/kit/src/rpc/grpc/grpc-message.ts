import type { OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** What gRPC requires to be encoded: all but printable ASCII, and the percent sign. */
const ENCODED = /[^\x20-\x24\x26-\x7e]+/gu;

/**
 * Encodes error messages as gRPC specifies
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses). connect-node also encodes
 * commas and colons, which grpc-js does not decode: its users would read `%2C`.
 */
export function keepMessageReadable(res: Http2ServerResponse): void {
  const addTrailers = res.addTrailers.bind(res);
  res.addTrailers = (trailers: OutgoingHttpHeaders) => {
    const message = trailers['grpc-message'];
    if (typeof message !== 'string') return addTrailers(trailers);
    addTrailers({ ...trailers, 'grpc-message': decodeURIComponent(message).replace(ENCODED, encodeURIComponent) });
  };
}
