import type { components } from './generated/openapi.ts';
import type { BodyOf, DataOf } from './http/routes.ts';

type Schemas = components['schemas'];

export type Application = Schemas['Application'];
export type ApplicationListItem = Schemas['ApplicationListItem'];
export interface ApplicationPage {
  readonly applications: ApplicationListItem[];
  readonly totalPages: number;
}
/** Usage of an application on a day (UTC). */
export type DailyUsage = Schemas['DailyUsage'];
export type ApplicationSettings = Schemas['ApplicationSettings'];
/** The settings to change. */
export type ApplicationChanges = { readonly [Name in keyof ApplicationSettings]?: ApplicationSettings[Name] | undefined };

/** A file as the table of files has it. */
export type StoredFile = Schemas['File'];
export type UploadedFile = Schemas['UploadedFile'];
/** A resumable upload. */
export type Upload = Schemas['Upload'];
export type FilesMetadata = Schemas['FilesMetadata'];
export type DownloadUrl = Schemas['DownloadUrl'];
export interface FilePage {
  readonly files: StoredFile[];
  readonly totalPages: number;
}

export type Release = Schemas['Release'];
export type ReleaseArtifact = Release['artifacts'][number];
export type NewRelease = BodyOf<'POST /api/v1/panel/releases'>;
export type ReleaseChanges = BodyOf<'PATCH /api/v1/panel/releases/{id}'>;
export type ReleaseSettings = Schemas['ReleaseSettings'];

export type Scope = Schemas['Scope'];
export type ApiKey = Schemas['ApiKey'];
/** A key with its text, `plaintextKey`. */
export interface ApiKeyPage {
  readonly apiKeys: ApiKey[];
  readonly totalPages: number;
}
/** Requests of a key on a day (UTC). */
export type DailyRequests = Schemas['DailyRequests'];
export type CreatedApiKey = Schemas['CreatedApiKey'];
export type NewApiKey = BodyOf<'POST /api/v1/panel/api-keys'>;
export type ApiKeyChanges = BodyOf<'PATCH /api/v1/panel/api-keys/{id}'>;

export type TrustedIssuer = Schemas['TrustedIssuer'];
export type NewTrustedIssuer = BodyOf<'POST /api/v1/panel/trusted-issuers'>;
/** A management key that a token was exchanged for. */
export interface ExchangedKey {
  readonly key: string;
  readonly expiresInSeconds: number;
  readonly scopes: Scope[];
}

export type AccountProfile = Schemas['Account'];
export type Session = Schemas['Session'];
export type NewAccount = BodyOf<'POST /api/v1/auth/sign-up'>;
export type Credentials = BodyOf<'POST /api/v1/auth/sign-in'>;
export type OpenSession = Schemas['OpenSession'];
/** Proof that the caller owns the account. */
export type OwnerProof = BodyOf<'DELETE /api/v1/auth/account'>;
export type PasswordChange = BodyOf<'POST /api/v1/auth/password/change'>;
export type PasswordReset = BodyOf<'POST /api/v1/auth/password/reset'>;
export type EmailChange = BodyOf<'POST /api/v1/auth/email/change'>;
export type SignInMethods = Schemas['SignInMethods'];
export type OidcLink = Schemas['OidcLink'];

export type AccountLimits = Schemas['AccountLimits'];
export type AuditEntry = Schemas['AuditEntry'];
export type AuditPage = DataOf<'GET /api/v1/panel/audit-log'>;
