import { createErrors } from '@latchkey/kit/errors/read-proto-errors';
import { type AccountError, AccountErrorSchema } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { type ApiKeyError, ApiKeyErrorSchema } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { type AuthenticationError, AuthenticationErrorSchema } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { type CredentialError, CredentialErrorSchema } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { type OidcError, OidcErrorSchema } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { type TrustedIssuerError, TrustedIssuerErrorSchema } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { type TwoFactorError, TwoFactorErrorSchema } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';

type Errors = typeof AccountError &
  typeof ApiKeyError &
  typeof AuthenticationError &
  typeof CredentialError &
  typeof OidcError &
  typeof TrustedIssuerError &
  typeof TwoFactorError;

export const errors = createErrors<Errors>(
  AccountErrorSchema,
  ApiKeyErrorSchema,
  AuthenticationErrorSchema,
  CredentialErrorSchema,
  OidcErrorSchema,
  TrustedIssuerErrorSchema,
  TwoFactorErrorSchema,
);
