import type { DescMethod } from '@bufbuild/protobuf';
import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { commonErrors, fromConnectError } from '@latchkey/kit/errors/errors';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { isRead, REPLAYED_HEADER, REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { UploadService } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TrustedIssuerService } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { currentRequest, formatRequestActor, type RequestContext } from './request-context.ts';

/** Services whose errors reach clients, the likeliest first. */
export const SERVICES = [
  ...[ApplicationService, AvatarService, FileService, AccountService, ApiKeyService],
  ...[AuthenticationService, CredentialService, OidcService, TrustedIssuerService, TwoFactorService],
  ...[ReleaseService, UploadService],
];

export type Clients = ReturnType<typeof createClients>;

/** Clients whose calls carry the id and the actor of the current request, and have a deadline. */
export function createClients(...transports: readonly [identity: Transport, apps: Transport, files: Transport]) {
  const [identity, apps, files] = transports.map(forCurrentRequest) as [Transport, Transport, Transport];
  return {
    authentication: createClient(AuthenticationService, identity),
    accounts: createClient(AccountService, identity),
    apiKeys: createClient(ApiKeyService, identity),
    credentials: createClient(CredentialService, identity),
    oidc: createClient(OidcService, identity),
    trustedIssuers: createClient(TrustedIssuerService, identity),
    twoFactor: createClient(TwoFactorService, identity),
    applications: createClient(ApplicationService, apps),
    releases: createClient(ReleaseService, apps),
    files: createClient(FileService, files),
    uploads: createClient(UploadService, files),
    avatars: createClient(AvatarService, files),
    auditLogs: [identity, apps, files].map((transport) => createClient(AuditService, transport)),
  };
}

/** Calls before the effect of a request: if their response is lost, the request changed nothing. */
const BEFORE_EFFECT = new Set<DescMethod>([
  AuthenticationService.method.authenticate,
  TwoFactorService.method.verifyTwoFactorCode,
  FileService.method.beginUpload,
  AvatarService.method.findUploadedAvatar,
]);

function hideOutcome(err: unknown): never {
  throw fromConnectError(err)?.reason === 'outcome_unknown' ? commonErrors.dependency_unavailable() : err;
}

function noteReplay<R extends { readonly header: Headers }>(response: R, request: RequestContext): R {
  if (response.header.has(REPLAYED_HEADER)) request.isReplayed = true;
  return response;
}

function forCurrentRequest(transport: Transport): Transport {
  return {
    unary(method, signal, timeoutMs = DEADLINES_MS.gateway, _header, input, values) {
      const request = currentRequest();
      const headers: Record<string, string> = {};
      if (request) headers[REQUEST_ID_HEADER] = request.requestId;
      // Authentication knows the actor only once it has ended, and records it itself.
      if (request && !isRead(method) && method.parent !== AuthenticationService)
        headers[ACTOR_HEADER] = formatRequestActor(request);
      if (request?.idempotency && method.parent !== AuthenticationService) Object.assign(headers, request.idempotency);
      const call = transport.unary(method, signal, timeoutMs, headers, input, values);
      const response = request?.idempotency ? call.then((found) => noteReplay(found, request)) : call;
      return BEFORE_EFFECT.has(method) ? response.catch(hideOutcome) : response;
    },
    stream: (...args) => transport.stream(...args),
  };
}
