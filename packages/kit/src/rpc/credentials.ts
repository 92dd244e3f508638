import { hash, timingSafeEqual } from 'node:crypto';
import { Code, ConnectError, createContextKey, type HandlerContext } from '@connectrpc/connect';

/**
 * Decides whether an `Authorization` header carries the credential of a service of this deployment. The address is that of whoever sent it, for those who
 * tell of refusals.
 */
export type CredentialCheck = (authorization: string | null | undefined, remoteAddress?: string) => boolean;

/** Where a call comes from, as its socket has it. */
export const REMOTE_ADDRESS = createContextKey<string | undefined>(undefined);

const digest = (text: string) => hash('sha256', text, 'buffer');

/**
 * Accepts `Bearer <credential>` for each given credential. Two at a time let a deployment change it without a stop; the first is
 * the one that clients send.
 */
export function createCredentialCheck(credentials: readonly string[]): CredentialCheck {
  const texts = credentials.map(bearer);
  const accepted = texts.map(digest);
  return (authorization) => {
    if (!authorization) return false;
    const given = digest(authorization);
    return accepted.some((expected) => timingSafeEqual(expected, given));
  };
}

/** The header value that presents a credential. */
export function bearer(credential: string): string {
  return `Bearer ${credential}`;
}

/** Services that answer anyone who shows no credential, for probes and tools. */
const OPEN_SERVICES = new Set([
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
]);

/** Whether a path, with its query, is that of a service that answers anyone. */
export function isOpenPath(url = ''): boolean {
  return OPEN_SERVICES.has(url.slice(1, url.indexOf('/', 1)));
}

/** The refusal of a call without a valid credential. */
export function unauthenticated(): ConnectError {
  return new ConnectError('a service credential is required', Code.Unauthenticated);
}

/**
 * The check as a gate of connect-node, which runs it before it reads the body. Who shows a credential is refused a wrong one also where none is needed:
 * services ask one another for their health, and are to learn so that their calls will fail.
 */
export function createRequestGate(check: CredentialCheck): (context: HandlerContext) => void {
  return (context) => {
    const given = context.requestHeader.get('authorization');
    if (given === null && OPEN_SERVICES.has(context.service.typeName)) return;
    if (!check(given, context.values.get(REMOTE_ADDRESS))) throw unauthenticated();
  };
}
