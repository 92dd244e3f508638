import { type CallOptions, type Client, createClient, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { type Requester, valuesOf, withActor } from './actor.ts';

/** Typed clients of the services behind the gateway; how they are reached is the transports' business. */
export interface Clients {
  readonly authentication: Client<typeof AuthenticationService>;
  readonly accounts: Client<typeof AccountService>;
  readonly apiKeys: Client<typeof ApiKeyService>;
  readonly oidc: Client<typeof OidcService>;
  readonly twoFactor: Client<typeof TwoFactorService>;
  readonly applications: Client<typeof ApplicationService>;
  readonly files: Client<typeof FileService>;
  readonly avatars: Client<typeof AvatarService>;
  /** The audit log of each service that keeps one. */
  readonly auditLogs: readonly Client<typeof AuditService>[];
}

/** Typed clients; what may change something says on whose behalf it is called. */
export function createClients(...transports: readonly [identity: Transport, apps: Transport, files: Transport]): Clients {
  const named = transports.map(withActor);
  const [identity, apps, files] = named as [Transport, Transport, Transport];
  return {
    authentication: createClient(AuthenticationService, identity),
    accounts: createClient(AccountService, identity),
    apiKeys: createClient(ApiKeyService, identity),
    oidc: createClient(OidcService, identity),
    twoFactor: createClient(TwoFactorService, identity),
    applications: createClient(ApplicationService, apps),
    files: createClient(FileService, files),
    avatars: createClient(AvatarService, files),
    auditLogs: named.map((transport) => createClient(AuditService, transport)),
  };
}

/** Longest wait for a service, in milliseconds: with the database frozen, a client still has its error within 5 s (promises R9). */
const CALL_TIMEOUT_MS = 4_500;

/** Options of every call that a request makes: its id, a deadline, and once it is known who makes it. */
export function callOptionsFor(requestId: string, requester?: Requester): CallOptions {
  const call = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: CALL_TIMEOUT_MS };
  return requester ? { ...call, contextValues: valuesOf(requester) } : call;
}
