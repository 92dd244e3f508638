import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { bearer } from './credentials.ts';
import { type ClosableTransport, createLeanTransport } from './lean-transport.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/**
 * A transport to a service of this deployment: the lean path for unary calls, connect-node for the rest.
 *
 * @param baseUrl `http://host:port` of the service's HTTP/1.1 port
 * @param credential service credential to present
 */
export function createServiceTransport(baseUrl: string, credential: string): ClosableTransport {
  const authorization = bearer(credential);
  const authorize: Interceptor = (next) => (req) => {
    req.header.set('authorization', authorization);
    return next(req);
  };
  const fallback = createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    interceptors: [authorize],
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
  });
  return createLeanTransport({ baseUrl, authorization, fallback });
}
