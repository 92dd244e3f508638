import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { createAgent } from '../tls/service-agent.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { bearer } from './credentials.ts';
import { type ClosableTransport, createLeanTransport } from './lean-transport.ts';
import { observeTransport } from './observed-transport.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/** Settings of {@link createServiceTransport}. */
export interface ServiceTransportOptions {
  /** Applied in order around each call. None unless set. */
  readonly interceptors?: readonly Interceptor[];
  /** What connections are secured with; required where the service has TLS. */
  readonly tls?: ServiceTls | undefined;
}

/**
 * A transport to a service of this deployment: the lean path for unary calls, connect-node for the rest.
 *
 * @param baseUrl `http://host:port` of the service's HTTP/1.1 port, or `https:` with TLS
 * @param credential service credential to present
 */
export function createServiceTransport(
  baseUrl: string,
  credential: string,
  options: ServiceTransportOptions = {},
): ClosableTransport {
  const { interceptors = [], tls } = options;
  const authorization = bearer(credential);
  const authorize: Interceptor = (next) => (req) => {
    req.header.set('authorization', authorization);
    return next(req);
  };
  const fallback = createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    interceptors: [...interceptors, authorize],
    nodeOptions: { agent: createAgent(tls) },
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
  });
  return observeTransport(createLeanTransport({ baseUrl, authorization, fallback, interceptors, tls }));
}
