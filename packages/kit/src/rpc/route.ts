import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { MethodImpl, ServiceImpl } from '@connectrpc/connect';

export interface RpcRoute {
  readonly service: DescService;
  readonly impl: Readonly<Record<string, MethodImpl<DescService['methods'][number]>>>;
}

type NothingToo<F> = F extends (...call: infer A) => infer R
  ? keyof Awaited<R> extends '$typeName' | '$unknown'
    ? (...call: A) => R | Promise<void>
    : F
  : never;
/** The methods of a service. Those whose response has no fields may return nothing. */
export type RpcImpl<S extends DescService> = { [M in keyof ServiceImpl<S>]: NothingToo<ServiceImpl<S>[M]> };

/** Pairs a service with its implementation; the compiler checks that no method is missing. */
export function rpcRoute<S extends DescService>(service: S, impl: RpcImpl<S>): RpcRoute {
  return { service, impl: impl as unknown as RpcRoute['impl'] };
}

/** Header that carries the request id from the gateway through every service. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Response header of a call whose result is that of an earlier one (ADR 21). */
export const REPLAYED_HEADER = 'idempotency-replayed';

/** Header that makes a call part of its caller's trace (W3C Trace Context). */
export const TRACEPARENT_HEADER = 'traceparent';

/**
 * `traceparent` of calls outside requests, such as polling. The server ignores it: some samplers
 * would record all these calls as one endless trace.
 */
export const NO_TRACE = '00-00000000000000000000000000000001-0000000000000001-00';

/** Largest message of a call, in bytes: a list of 20 trusted issuers has up to 1.3 MiB. */
export const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;

/** True if a method changes nothing. */
export const isRead = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;

const paths = new WeakMap<object, string>();

/** URL path of a method, such as `/latchkey.apps.v1.ApplicationService/ListApplications`. */
export function methodPath(method: { readonly parent: { readonly typeName: string }; readonly name: string }): string {
  let path = paths.get(method);
  if (path === undefined) {
    path = `/${method.parent.typeName}/${method.name}`;
    paths.set(method, path);
  }
  return path;
}
