import type { KeyObject } from 'node:crypto';
import type { Logger } from '@latchkey/kit/logger';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { Passwords } from './account/password.ts';
import type { FailedAttempts } from './audit/failed-attempts.ts';
import type { IdentityDatabase } from './db/schema.ts';
import type { Epochs } from './epoch/epoch.ts';
import type { Issuer } from './oidc/issuer.ts';
import type { SessionSweeper } from './session/session-sweeper.ts';

/** What the use cases of this service work on. */
export interface IdentityContext {
  readonly db: Kysely<IdentityDatabase>;
  /** For the statements of every request, which are worth a name. */
  readonly pool: pg.Pool;
  readonly epochs: Epochs;
  readonly passwords: Passwords;
  readonly sessionSweeper: SessionSweeper;
  readonly failedAttempts: FailedAttempts;
  readonly clock: () => Date;
  /** Cryptographically secure random bytes. */
  readonly random: (bytes: number) => Buffer;
  readonly logger: Logger;
  /** Key of the HMAC that a management key is stored as. */
  readonly apiKeyPepper: KeyObject;
  readonly csrfKey: KeyObject;
  /** Key that secrets of authenticator apps are encrypted with. */
  readonly twoFactorKey: KeyObject;
  /** Key of the HMAC that a recovery code is stored as. */
  readonly recoveryCodeKey: KeyObject;
  /** Failed attempts at an account's second factor in 15 minutes. */
  readonly twoFactorFailuresMax: number;
  /** Wrong passwords shown with sessions of an account in 15 minutes. */
  readonly passwordFailuresMax: number;
  /** Key that flows of OpenID Connect are sealed with. */
  readonly oidcKey: KeyObject;
  /** The issuers that are configured, by name. */
  readonly oidcIssuers: ReadonlyMap<string, Issuer>;
  readonly signUp: 'open' | 'closed';
  readonly activeApiKeysMax: number;
}
