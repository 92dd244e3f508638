import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import { createContextValues, type Interceptor, type Transport, type UnaryResponse } from '@connectrpc/connect';
import { Pool } from 'undici';
import { createConnector } from '../tls/client-tls.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { methodPath } from './bound-method.ts';
import { clientTimeoutMs, withinBounds } from './call-bounds.ts';
import { intercept } from './interceptors.ts';
import { toResponse } from './lean-answer.ts';
import { LeanCall } from './lean-call.ts';

/** How to reach a service. */
export interface LeanTransportOptions {
  /** `http://host:port` of the service, or `https:` with TLS. */
  readonly baseUrl: string;
  /** Value of the `Authorization` header on every call. */
  readonly authorization: string;
  /** Carries what is not unary. */
  readonly fallback: Transport;
  /** Most connections. 16 unless set: more were slower. */
  readonly connections?: number;
  /** Applied in order around each unary call. None unless set. */
  readonly interceptors?: readonly Interceptor[];
  /** What connections are secured with. None unless set. */
  readonly tls?: ServiceTls | undefined;
}

/** Age at which a connection is replaced, in milliseconds: behind a balancer, processes that came later would get no share otherwise. */
const CONNECTION_AGE_MS_MAX = 60_000;

/** A transport that holds connections. */
export interface ClosableTransport extends Transport {
  /** Ends the connections once the calls under way have ended. */
  close(): Promise<void>;
}

/**
 * Speaks unary Connect in binary over an HTTP/1.1 pool: one POST with a few headers
 * (https://connectrpc.com/docs/protocol#unary-request). A canceled call costs its connection and nothing else. A call of a method
 * without side effects that got no answer at all is tried once more, and one that gets none soon is sent on a second connection meanwhile; no other is.
 */
export function createLeanTransport(options: LeanTransportOptions): ClosableTransport {
  const { authorization, interceptors = [] } = options;
  const pool = new Pool(options.baseUrl, {
    connections: options.connections ?? 16,
    connect: createConnector(options.tls),
    allowH2: false,
    clientTtl: CONNECTION_AGE_MS_MAX,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    // Every call has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const route = { pool, hedges: { count: 0 } };
  let closed: Promise<void> | undefined;
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const bounds = { signal: signal ?? undefined, timeoutMs: clientTimeoutMs(timeoutMs) };
      const call = new LeanCall(route, authorization, bounds.timeoutMs);
      const message = '$typeName' in input ? (input as Message) : create(method.input as DescMessage, input);
      if (interceptors.length === 0) {
        return withinBounds(bounds, call, async () => toResponse(method, await call.send(method, message, { header, values })));
      }
      const controller = new AbortController();
      const abort = (reason?: unknown) => {
        call.abort(reason);
        controller.abort(reason);
      };
      return withinBounds(bounds, { abort }, async () => {
        const request = {
          method,
          message,
          url: options.baseUrl + methodPath(method),
          signal: controller.signal,
          header: new Headers(header),
          contextValues: values ?? createContextValues(),
        };
        const answer = await intercept(interceptors, request, async (req) =>
          toResponse(req.method, await call.send(req.method, req.message, { header: req.header, values: req.contextValues })),
        );
        return answer as UnaryResponse<typeof method.input, typeof method.output>;
      });
    },
    stream: (...args) => options.fallback.stream(...args),
    close() {
      closed ??= pool.close();
      return closed;
    },
  };
}
