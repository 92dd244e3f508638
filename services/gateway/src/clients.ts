import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { type Client, createClient, type Transport } from '@connectrpc/connect';
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
import { currentRequest, formatRequestActor } from './request-context.ts';

/** Each client's gRPC service, and the service that serves it. The likeliest errors come first. */
export const CLIENTS = {
  applications: [ApplicationService, 'apps'],
  avatars: [AvatarService, 'files'],
  files: [FileService, 'files'],
  accounts: [AccountService, 'identity'],
  apiKeys: [ApiKeyService, 'identity'],
  authentication: [AuthenticationService, 'identity'],
  credentials: [CredentialService, 'identity'],
  oidc: [OidcService, 'identity'],
  trustedIssuers: [TrustedIssuerService, 'identity'],
  twoFactor: [TwoFactorService, 'identity'],
  releases: [ReleaseService, 'apps'],
  uploads: [UploadService, 'files'],
} as const;

export const SERVICES = Object.values(CLIENTS).map(([service]) => service);

export type MethodName = { [N in keyof typeof CLIENTS]: keyof (typeof CLIENTS)[N][0]['method'] }[keyof typeof CLIENTS];

/** Methods of these services by name, which no two share. */
export const METHODS: ReadonlyMap<string, DescMethod> = new Map(
  SERVICES.flatMap(({ methods }) => methods.map((method) => [method.localName, method] as const)),
);

export type Clients = { readonly [N in keyof typeof CLIENTS]: Client<(typeof CLIENTS)[N][0]> } & {
  readonly auditLogs: ReadonlyArray<Client<typeof AuditService>>;
};

/** Clients whose calls carry the id and the actor of the current request, and have a deadline. */
export function createClients(...transports: readonly [identity: Transport, apps: Transport, files: Transport]): Clients {
  const [identity, apps, files] = transports.map(forCurrentRequest) as [Transport, Transport, Transport];
  const served = { identity, apps, files };
  const clients = Object.entries(CLIENTS).map(([name, [service, by]]) => [name, createClient<DescService>(service, served[by])]);
  const auditLogs = Object.values(served).map((transport) => createClient(AuditService, transport));
  return { ...Object.fromEntries(clients), auditLogs };
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
      const response = request?.idempotency
        ? call.then((found) => {
            request.isReplayed ||= found.header.has(REPLAYED_HEADER);
            return found;
          })
        : call;
      return BEFORE_EFFECT.has(method) ? response.catch(hideOutcome) : response;
    },
    stream: (...args) => transport.stream(...args),
  };
}
