import { create, type DescMethodUnary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { Pool } from 'undici';
import { toUnknownOutcome } from '../../errors/errors.ts';
import { isMeasuring } from '../../telemetry/metrics.ts';
import { activeTracer, formatTraceparent } from '../../telemetry/tracing.ts';
import { createConnector } from '../../tls/client-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { clientTimeoutMs, type HeaderSource, runCall, toResponse } from '../call.ts';
import { bearer } from '../credentials.ts';
import { DEADLINES_MS } from '../deadlines.ts';
import { type CallTimer, callTimer, observed, rpcCalled, rpcSpan } from '../observe.ts';
import { isRead, NO_TRACE, REPLAYED_HEADER, TRACEPARENT_HEADER } from '../route.ts';
import { createBatchedCalls } from './batched-calls.ts';
import { MESSAGE_TYPE, readMessage } from './read-response.ts';
import { serialize, UnaryCall } from './unary-call.ts';

/** More connections were slower. */
const CONNECTIONS = 16;
/** Connections of calls that wait for an issuer or for files to be read, which may all be slow. */
const LONG_CALL_CONNECTIONS = 64;

/** Age at which a connection is replaced, so that a balancer can use new processes. */
const CONNECTION_AGE_MS_MAX = 60_000;

interface ServiceTransportOptions {
  readonly tls?: ServiceTls | undefined;
  /** True if the calls of one turn of the event loop to this method share a request. */
  isBatched?(method: DescMethodUnary): boolean;
}

/**
 * A transport to a service: binary unary calls of the Connect protocol over an HTTP/1.1 pool
 * (https://connectrpc.com/docs/protocol#unary-request). A canceled call costs one connection. Calls
 * with a longer deadline than those of the gateway have connections for themselves.
 *
 * @param baseUrl `http://host:port` of the service's HTTP/1.1 port, or `https:` with TLS
 * @param credential service credential to present
 * @returns `close` closes the connections once the calls under way have ended
 */
export function createServiceTransport(
  baseUrl: string,
  credential: string,
  { tls, isBatched }: ServiceTransportOptions = {},
): Transport & { close(): Promise<void> } {
  const authorization = bearer(credential);
  const openPool = (connections: number) =>
    new Pool(baseUrl, {
      connections,
      connect: createConnector(tls),
      allowH2: false,
      clientTtl: CONNECTION_AGE_MS_MAX,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      // Every call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  const [pool, longCalls] = [openPool(CONNECTIONS), openPool(LONG_CALL_CONNECTIONS)];
  const createCall = (timeoutMs: number) =>
    new UnaryCall(timeoutMs > DEADLINES_MS.gateway ? longCalls : pool, authorization, timeoutMs);
  const createBatchedCall = createBatchedCalls(createCall);
  const unary: Transport['unary'] = (method, signal, timeoutMs, header, input) => {
    const limits = { signal, timeoutMs: clientTimeoutMs(timeoutMs) };
    const message = create(method.input, input);
    if (isBatched?.(method)) {
      const call = createBatchedCall(method, message, header, limits.timeoutMs);
      return runCall(limits, call, async () => toResponse(method, (await call.send()) as MessageShape<typeof method.output>));
    }
    const call = createCall(limits.timeoutMs);
    return runCall(limits, call, async () => {
      const response = await call.send(method, serialize(method, message), header, MESSAGE_TYPE);
      const { [REPLAYED_HEADER]: replayed } = response.headers;
      const responseHeader = replayed === undefined ? undefined : new Headers({ [REPLAYED_HEADER]: String(replayed) });
      return toResponse(method, readMessage(method.output, response), responseHeader);
    }).catch((err: unknown) => {
      throw call.isSent && !isRead(method) ? toUnknownOutcome(err) : err;
    });
  };
  return {
    unary: observeCalls(unary),
    stream: () => Promise.reject(new ConnectError('services have no streaming methods', Code.Unimplemented)),
    close: async () => {
      if (!pool.closed) await Promise.all([pool.close(), longCalls.close()]);
    },
  };
}

/** The same function while metrics and traces are off. A header carries the span to the service. */
function observeCalls(unary: Transport['unary']): Transport['unary'] {
  const tracer = activeTracer();
  if (!tracer && !isMeasuring()) return unary;
  const timers = new Map<DescMethodUnary, CallTimer | undefined>();
  return (method, signal, timeoutMs, header, ...rest) => {
    if (!timers.has(method)) timers.set(method, callTimer(rpcCalled, method));
    const span = tracer?.traceparent() === undefined ? undefined : tracer.start({ ...rpcSpan(method), kind: 'client' });
    const traced = tracer ? withTraceparent(header, span ? formatTraceparent(span) : NO_TRACE) : header;
    return observed(timers.get(method), span, () => unary(method, signal, timeoutMs, traced, ...rest));
  };
}

function withTraceparent(header: HeaderSource, traceparent: string): Headers {
  const headers = new Headers(header);
  headers.set(TRACEPARENT_HEADER, traceparent);
  return headers;
}
