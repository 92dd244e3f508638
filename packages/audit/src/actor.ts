import { isIP } from 'node:net';
import type { HandlerContext } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { parseId } from '@latchkey/kit/validation/id';

/** Header of calls that may change something: `<kind> <credential id or -> <address or ->`. */
export const ACTOR_HEADER = 'x-latchkey-actor';

/** `anonymous` has no valid credential; `service` is a service, or a caller that named no actor. */
export type ActorKind = 'api_key' | 'session' | 'operator' | 'service' | 'anonymous';

export interface Actor {
  readonly kind: ActorKind;
  /** Id of the API key's or the session's record, which is not a secret. */
  readonly credentialId: string | undefined;
  readonly address: string | undefined;
}

export interface Origin extends Actor {
  readonly requestId: string | undefined;
}

/** A use-case context with the origin of the change; use cases that change something take it. */
export type Acting<C> = C & { readonly origin: Origin };

const SERVICE: Actor = { kind: 'service', credentialId: undefined, address: undefined };

export const OPERATOR: Origin = { ...SERVICE, kind: 'operator', requestId: undefined };

export const SERVICE_ORIGIN: Origin = { ...SERVICE, requestId: undefined };

/** The value of {@link ACTOR_HEADER}; undefined for a service, which sends none. */
export function formatActor({ kind, credentialId = '-', address }: Actor): string | undefined {
  // The zone of an address has no meaning on another host.
  return kind === 'service' ? undefined : `${kind} ${credentialId} ${address?.replace(/%.*/s, '') || '-'}`;
}

const ACTOR = /^(api_key|session|anonymous) (\S{1,36}) (\S{1,45})$/;

/** Parses {@link ACTOR_HEADER}. Without a valid value, the actor is a service. */
function parseActor(text: string | null | undefined): Actor {
  const [, kind, id = '-', address = '-'] = ACTOR.exec(text ?? '') ?? [];
  const credentialId = id === '-' ? undefined : parseId(id);
  const isValid = (id === '-' || credentialId !== undefined) && (address === '-' || isIP(address) !== 0);
  if (kind === undefined || !isValid) return SERVICE;
  return { kind: kind as ActorKind, credentialId, address: address === '-' ? undefined : address };
}

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Parses the values of {@link ACTOR_HEADER} and of the request id's header. */
export function originFrom(actor: string | null | undefined, requestId: string | null | undefined): Origin {
  return { ...parseActor(actor), requestId: REQUEST_ID.test(requestId ?? '') ? (requestId as string) : undefined };
}

export function actingFor<C extends object>(ctx: C, { requestHeader }: Pick<HandlerContext, 'requestHeader'>): Acting<C> {
  return { ...ctx, origin: originFrom(requestHeader.get(ACTOR_HEADER), requestHeader.get(REQUEST_ID_HEADER)) };
}

type Bound<R, M> = (request: R, call: HandlerContext) => Promise<M>;
interface Bind<C> {
  <R, T>(useCase: (ctx: C, request: R) => Promise<T>): Bound<R, T>;
  <R, T, M>(useCase: (ctx: C, request: R) => Promise<T>, toMessage: (result: T) => M): Bound<R, M>;
}

/** Makes RPC methods of use cases that take a context, which the call gives, and the request. */
export function bindCalls<C>(contextOf: (call: HandlerContext) => C): Bind<C> {
  const bind = <R, T, M>(useCase: (ctx: C, request: R) => Promise<T>, toMessage?: (result: T) => M) => {
    return async (request: R, call: HandlerContext) => {
      const result = await useCase(contextOf(call), request);
      return toMessage ? toMessage(result) : result;
    };
  };
  return bind as Bind<C>;
}
