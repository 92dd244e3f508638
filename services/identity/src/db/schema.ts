import type { ColumnType, Generated } from 'kysely';

/** A dashboard account. Username and email are as their owner wrote them; unique indexes ignore their case. */
export interface AccountTable {
  id: string;
  username: string;
  email: string;
  /** argon2id in PHC format. Null means that the account has no password, as it signs in by OpenID Connect alone. */
  password_hash: string | null;
  /** The image that the account's OpenID Connect issuer named, which nobody fetches. */
  picture_url: Generated<string | null>;
  /** The avatar, whose image the files service has, and when its upload was begun; both or neither. */
  avatar_id: Generated<string | null>;
  avatar_uploaded_at: Generated<Date | null>;
  /** Grows whenever sessions of the account are ended, or a way to sign in is taken away: a sign-in begun before comes to nothing. */
  sign_in_generation: Generated<number>;
  /** Times of the wrong passwords of the last 15 minutes that were shown with a session, to do more than it may. */
  password_failures: ColumnType<Date[], Date[] | undefined, Date[]>;
  created_at: Date;
}

/** A dashboard session. It is idle from `last_seen_at`, which moves at most once a minute. */
export interface SessionTable {
  id: string;
  account_id: string;
  /** SHA-256 of the token. */
  token_hash: Buffer;
  created_at: Date;
  last_seen_at: Date;
  /** The session's end however much it is used. */
  expires_at: Date;
}

/** The second factor of an account, or the secret of one that is being set up. */
export interface TwoFactorTable {
  account_id: string;
  /** The secret in base32, encrypted. */
  secret_sealed: Buffer;
  /** Null means that it is only set up. */
  enabled_at: Generated<Date | null>;
  /** Number of the time step (RFC 6238) whose code was accepted last. */
  last_step: Generated<number | null>;
  /** Times of the failed attempts of the last 15 minutes; processes' clocks may differ. */
  recent_failures: ColumnType<Date[], Date[] | undefined, Date[]>;
  created_at: Date;
}

/** A recovery code, good in place of a one-time code until it is used. */
export interface RecoveryCodeTable {
  account_id: string;
  /** HMAC-SHA-256 of account and code. */
  code_hash: Buffer;
  used_at: Generated<Date | null>;
}

/** A way to sign in to an account: who its owner is at an OpenID Connect issuer. */
export interface OidcLinkTable {
  issuer: string;
  subject: string;
  account_id: string;
  created_at: Date;
}

/** A flow of OpenID Connect that is used up, until it is over anyhow. */
export interface OidcUsedFlowTable {
  /** SHA-256 of its state. */
  state_hash: Buffer;
  expires_at: Date;
}

/** A management API key without its text. */
export interface ApiKeyTable {
  id: string;
  account_id: string;
  name: string;
  public_id: string;
  /** HMAC-SHA-256 of the whole text under the pepper. */
  key_hash: Buffer;
  key_last4: string;
  scopes: string[];
  all_applications: boolean;
  /** Empty when `all_applications`. */
  application_ids: string[];
  expires_at: Date | null;
  revoked_at: Generated<Date | null>;
  last_used_at: Generated<Date | null>;
  last_used_ip: Generated<string | null>;
  created_at: Date;
  updated_at: Date;
}

export interface IdentityDatabase {
  account: AccountTable;
  session: SessionTable;
  two_factor: TwoFactorTable;
  recovery_code: RecoveryCodeTable;
  oidc_link: OidcLinkTable;
  oidc_used_flow: OidcUsedFlowTable;
  api_key: ApiKeyTable;
}
