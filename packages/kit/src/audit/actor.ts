import { isIP } from 'node:net';
import type { HandlerContext } from '@connectrpc/connect';
import { parseId } from '../id.ts';
import { REQUEST_ID_HEADER } from '../rpc/route.ts';

/** Header that says on whose behalf a call is made that may change something: `<kind> <credential id or -> <address or ->`. */
export const ACTOR_HEADER = 'x-latchkey-actor';

/** What a change may be made with; `anonymous` is somebody who has shown no credential that is good, `service` whoever was not named. */
export const ACTOR_KINDS = ['api_key', 'session', 'operator', 'service', 'anonymous'] as const;

export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Who does something. */
export interface Actor {
  readonly kind: ActorKind;
  /** Id of the key's or the session's record, which is no secret; undefined where there is none. */
  readonly credentialId: string | undefined;
  /** IP address of the client; undefined where it is not known. */
  readonly address: string | undefined;
}

/** Where a change comes from. */
export interface Origin extends Actor {
  /** Id of the request; undefined where there is none. */
  readonly requestId: string | undefined;
}

/** A context of use cases that also says on whose behalf they work. What changes something takes this one, so that none can forget to say who did it. */
export type Acting<C> = C & { readonly origin: Origin };

/** Of a call without {@link ACTOR_HEADER}. */
const SERVICE: Actor = { kind: 'service', credentialId: undefined, address: undefined };

/** Of a command of whoever runs the deployment. */
export const OPERATOR: Origin = { kind: 'operator', credentialId: undefined, address: undefined, requestId: undefined };

/** Of what a service does by itself. */
export const BY_ITSELF: Origin = { ...SERVICE, requestId: undefined };

/** The value of {@link ACTOR_HEADER}; undefined for a service, which does not say it. */
export function formatActor({ kind, credentialId = '-', address }: Actor): string | undefined {
  // A zone means something on the client's own host only.
  return kind === 'service' ? undefined : `${kind} ${credentialId} ${address?.replace(/%.*/s, '') || '-'}`;
}

/** Who may be named by a caller: operators are at the database, and a service does not say that it is one. */
const ACTOR = /^(api_key|session|anonymous) (\S{1,36}) (\S{1,45})$/;

/** Reads {@link ACTOR_HEADER}; what is none names nobody. */
export function parseActor(text: string | null | undefined): Actor {
  const [, kind, id = '-', address = '-'] = ACTOR.exec(text ?? '') ?? [];
  const credentialId = id === '-' ? undefined : parseId(id);
  const isId = id === '-' || credentialId !== undefined;
  const isAddress = address === '-' || isIP(address) !== 0;
  if (kind === undefined || !isId || !isAddress) return SERVICE;
  return { kind: kind as ActorKind, credentialId, address: address === '-' ? undefined : address };
}

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** An actor and the id of the request, where that is one that may be kept. */
export function originFrom(actor: string | null | undefined, requestId: string | null | undefined): Origin {
  return { ...parseActor(actor), requestId: REQUEST_ID.test(requestId ?? '') ? (requestId as string) : undefined };
}

/** Where a call comes from, by its headers. */
export function originOf({ requestHeader }: Pick<HandlerContext, 'requestHeader'>): Origin {
  return originFrom(requestHeader.get(ACTOR_HEADER), requestHeader.get(REQUEST_ID_HEADER));
}

/** The context of use cases for a call that may change something. */
export function actingFor<C extends object>(ctx: C, call: Pick<HandlerContext, 'requestHeader'>): Acting<C> {
  return { ...ctx, origin: originOf(call) };
}
