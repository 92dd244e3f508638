import { create, type DescMethodUnary, type DescService, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import type { TestCertificate } from '@latchkey/testkit/network/certificates';

/** The services of our protocol by process. */
export const RPC_SERVICES = {
  apps: [ApplicationService, AuditService],
  identity: [
    ...[AccountService, ApiKeyService, AuthenticationService, CredentialService, OidcService, TwoFactorService, AuditService],
  ],
  files: [FileService, AvatarService, AuditService],
  realtime: [],
  'avatar-worker': [],
} satisfies Record<string, readonly DescService[]>;

/** A certificate, its key, and the authority that the other side is checked against. */
export type Tls = TestCertificate & { readonly ca: string };

/** Calls methods of a process with empty requests over one connection with TLS, until `close`. */
export function openGrpc(address: string, tls: Tls) {
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) => Buffer.from(pem)) as [Buffer, Buffer, Buffer];
  const client = new Client(address, credentials.createSsl(ca, key, cert));
  return {
    close: () => client.close(),
    /** Resolves with `0`, or the status code and message. */
    call(method: DescMethodUnary, authorization?: string): Promise<string> {
      const metadata = new Metadata();
      if (authorization !== undefined) metadata.set('authorization', authorization);
      return new Promise((resolve) => {
        client.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (bytes: Uint8Array) => Buffer.from(bytes),
          (bytes) => fromBinary(method.output, bytes),
          toBinary(method.input, create(method.input)),
          metadata,
          { deadline: Date.now() + 10_000 },
          (err) => resolve(err ? `${err.code} ${err.details}` : '0'),
        );
      });
    },
  };
}
