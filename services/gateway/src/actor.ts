import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type ContextValues, createContextKey, createContextValues, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER, formatActor } from '@latchkey/audit/actor';
import type { Principal } from './authentication/principal.ts';

/** Who makes a request, and from where. */
export interface Requester {
  /** Undefined on routes that anybody may call. */
  readonly principal: Pick<Principal, 'kind' | 'credentialId'> | undefined;
  readonly clientIp: string;
}

const REQUESTER = createContextKey<Requester | undefined>(undefined, { description: 'who makes the request' });

/** Values for the calls that a request makes, by which {@link withActor} knows on whose behalf they are made. */
export function valuesOf(requester: Requester): ContextValues {
  return createContextValues().set(REQUESTER, requester);
}

/** Who makes a request, as services write it to the audit log. */
export function actorOf({ principal, clientIp: address }: Requester): string {
  const kind = principal === undefined ? 'anonymous' : principal.kind === 'key' ? 'api_key' : 'session';
  // Of these kinds, each is said.
  return formatActor({ kind, credentialId: principal?.credentialId, address }) as string;
}

const isRead = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;

/** A transport that says on whose behalf it calls, of calls that may change something. Reads are sent as they are. */
export function withActor(transport: Transport): Transport {
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const requester = isRead(method) ? undefined : values?.get(REQUESTER);
      if (!requester) return transport.unary(method, signal, timeoutMs, header, input, values);
      const named = new Headers(header);
      named.set(ACTOR_HEADER, actorOf(requester));
      return transport.unary(method, signal, timeoutMs, Object.fromEntries(named), input, values);
    },
    stream: (...args) => transport.stream(...args),
  };
}
