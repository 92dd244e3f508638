import type { DescService } from '@bufbuild/protobuf';
import type { MethodImpl, ServiceImpl } from '@connectrpc/connect';

/** One RPC service with its implementation. */
export interface RpcRoute {
  readonly service: DescService;
  readonly impl: Readonly<Record<string, MethodImpl<DescService['methods'][number]>>>;
}

/** Pairs a service with its implementation; the compiler sees to it that no method is missing. */
export function rpcRoute<S extends DescService>(service: S, impl: ServiceImpl<S>): RpcRoute {
  return { service, impl: impl as unknown as RpcRoute['impl'] };
}

/** Header that carries the request's id from the gateway through every service. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Header that makes a call a part of its caller's trace (W3C Trace Context). */
export const TRACEPARENT_HEADER = 'traceparent';

/**
 * What calls say that are nobody's in particular, such as looks for what has changed: each would be a trace of its own otherwise. It is not left to the
 * sampler of the other end, as some heed no parent, and would take all of them for one trace that never ends.
 */
export const NO_TRACE = '00-00000000000000000000000000000001-0000000000000001-00';

/** Largest request or answer message, in bytes, on every path. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;

/** Longest deadline that a server accepts, and the one it sets where the caller set none, in milliseconds. */
export const DEADLINE_MS_MAX = 60_000;
