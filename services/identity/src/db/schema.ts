import type { ColumnType, Generated, Kysely } from 'kysely';

/** A dashboard account. Unique indexes on username and email ignore case. */
export interface AccountTable {
  id: string;
  username: string;
  email: string;
  /** argon2id in PHC format; null for an account that only signs in by OpenID Connect. */
  password_hash: string | null;
  /** Profile image that the OpenID Connect issuer named. The service never fetches it. */
  picture_url: Generated<string | null>;
  avatar_id: Generated<string | null>;
  avatar_uploaded_at: Generated<Date | null>;
  /** True if the two columns above are those of a removal, which also has its time and id. */
  avatar_removed: Generated<boolean>;
  /** Epoch of sign-ins. It grows when sessions end, which cancels sign-ins under way. */
  sign_in_generation: Generated<number>;
  /** Times of recent wrong passwords that came with a session. */
  password_failures: ColumnType<Date[], Date[] | undefined, Date[]>;
  created_at: Date;
}

export interface SessionTable {
  id: string;
  account_id: string;
  token_hash: Buffer;
  created_at: Date;
  /** Written at most once a minute and address, with the two columns below. */
  last_seen_at: Date;
  last_used_ip: Generated<string | null>;
  user_agent: Generated<string | null>;
  expires_at: Date;
}

export interface TwoFactorTable {
  account_id: string;
  secret_sealed: Buffer;
  enabled_at: Generated<Date | null>;
  /** TOTP time step (RFC 6238) of the last accepted code. */
  last_step: Generated<number | null>;
  recent_failures: ColumnType<Date[], Date[] | undefined, Date[]>;
  created_at: Date;
}

export interface OidcLinkTable {
  issuer: string;
  subject: string;
  account_id: string;
  created_at: Date;
}

export interface MailTable {
  id: string;
  /** A link to reset the password, one to confirm a new email, or a notice of a new email. */
  kind: 'password_reset' | 'email_change' | 'email_notice';
  /** Null for a password reset until its mail is sent, and if no account has the address. */
  account_id: string | null;
  recipient: string;
  /** SHA-256 of the link's token. */
  token_hash: Buffer;
  created_at: Date;
  expires_at: Date;
  /** Time when the mail was sent, or found to have no recipient. */
  done_at: Generated<Date | null>;
}

export interface ApiKeyTable {
  id: string;
  account_id: string;
  name: string;
  public_id: string;
  /** HMAC-SHA-256 of the whole key text under the pepper. */
  key_hash: Buffer;
  key_last4: string;
  scopes: string[];
  all_applications: boolean;
  /** Empty when `all_applications`. */
  application_ids: string[];
  /** Set for the key of a trusted issuer, with the two columns below. */
  trusted_issuer_id: Generated<string | null>;
  issuer: Generated<string | null>;
  subject: Generated<string | null>;
  expires_at: Date | null;
  revoked_at: Generated<Date | null>;
  last_used_at: Generated<Date | null>;
  last_used_ip: Generated<string | null>;
  created_at: Date;
  updated_at: Date;
}

export interface TrustedIssuerTable {
  id: string;
  account_id: string;
  name: string;
  issuer: string;
  audience: string;
  /** Each as JSON, `["name",value]`. */
  claims: string[];
  /** SHA-256 of issuer, audience and the longest claim, by which a token finds the issuer. */
  lookup_hash: Buffer;
  /** JSON Web Key Set; null where the issuer publishes its keys. */
  jwks: string | null;
  scopes: string[];
  all_applications: boolean;
  /** Empty when `all_applications`. */
  application_ids: string[];
  lifetime_seconds: number;
  created_at: Date;
}

/** A deleted account, for the removal of what other services store of it. */
export interface DeletedAccountTable {
  account_id: string;
  deleted_at: Date;
  /** Time when its applications were deleted, late enough that no request creates another. */
  completed_at: Generated<Date | null>;
}

export interface IdentityDatabase {
  account: AccountTable;
  session: SessionTable;
  two_factor: TwoFactorTable;
  recovery_code: { account_id: string; code_hash: Buffer; used_at: Generated<Date | null> };
  oidc_link: OidcLinkTable;
  api_key: ApiKeyTable;
  trusted_issuer: TrustedIssuerTable;
  /** What is accepted once: tokens of trusted issuers and flows of OpenID Connect. */
  used_token: { token_hash: Buffer; expires_at: Date };
  deleted_account: DeletedAccountTable;
  mail: MailTable;
}

export type Db = Kysely<IdentityDatabase>;
