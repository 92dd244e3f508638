import type { Scope } from '@latchkey/kit/validation/scopes';

/** An authenticated caller and what it may do. */
export interface Principal {
  readonly kind: 'key' | 'session';
  readonly accountId: string;
  readonly username: string;
  /** Id of the key's or the session's record. */
  readonly credentialId: string;
  readonly scopes: ReadonlySet<string>;
  readonly allApplications: boolean;
  readonly applicationIds: ReadonlySet<string>;
  /** When the credential ends, in milliseconds of Unix time; Infinity for never. */
  readonly expiresAtMs: number;
  /** Required in state-changing requests of a session; empty for a key. */
  readonly csrfToken: string;
}

/** Whether a route's scope is granted. A session has every scope of its account. */
export function hasScope(principal: Principal, scope: Scope): boolean {
  return principal.kind === 'session' || principal.scopes.has(scope);
}

/** Whether the credential reaches an application of its account. */
export function reaches(principal: Principal, applicationId: string): boolean {
  return principal.allApplications || principal.applicationIds.has(applicationId);
}
