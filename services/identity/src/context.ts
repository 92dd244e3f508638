import type { KeyObject } from 'node:crypto';
import type { Logger } from '@latchkey/kit/logger';
import type pg from 'pg';
import type { Passwords } from './account/password.ts';
import type { CredentialFailureLog } from './audit/credential-failures.ts';
import type { Db } from './db/schema.ts';
import type { Epochs } from './epoch/epoch.ts';
import type { Issuer } from './oidc/issuer.ts';

/** Dependencies of the use cases. */
export interface IdentityContext {
  readonly db: Db;
  /** For the named statements of authentication, which nearly every request runs. */
  readonly pool: pg.Pool;
  readonly epochs: Epochs;
  readonly passwords: Passwords;
  readonly credentialFailures: CredentialFailureLog;
  readonly clock: () => Date;
  /** Cryptographically secure random bytes. */
  readonly random: (bytes: number) => Buffer;
  readonly logger: Logger;
  /** HMAC key of stored management keys. */
  readonly apiKeyPepper: KeyObject;
  readonly csrfKey: KeyObject;
  /** Encrypts TOTP secrets. */
  readonly twoFactorKey: KeyObject;
  /** HMAC key of stored recovery codes. */
  readonly recoveryCodeKey: KeyObject;
  /** Encrypts OpenID Connect flows. */
  readonly oidcKey: KeyObject;
  /** In 15 minutes, per account. */
  readonly twoFactorFailuresMax: number;
  /** Of passwords that come with a session, in 15 minutes, per account. */
  readonly passwordFailuresMax: number;
  readonly oidcIssuers: ReadonlyMap<string, Issuer>;
  readonly signUp: 'open' | 'closed';
  readonly activeApiKeysMax: number;
}
