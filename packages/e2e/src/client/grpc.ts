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

/** Calls a method with an empty request over TLS. Returns `0`, or the status code and message. */
export async function callGrpc(address: string, tls: Tls, method: DescMethodUnary, authorization?: string): Promise<string> {
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) => Buffer.from(pem)) as [Buffer, Buffer, Buffer];
  const client = new Client(address, credentials.createSsl(ca, key, cert));
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  const outcome = new Promise<string>((resolve) => {
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
  return outcome.finally(() => client.close());
}
