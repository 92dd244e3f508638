import type { GatewayConfig } from '../config.ts';
import type { Limit } from './limit.ts';

const MINUTE_MS = 60_000;

/** The limits that the gateway keeps (decisions 9). */
export interface Limits {
  readonly ip: Limit;
  readonly principal: Limit;
  readonly signUp: Limit;
  readonly signIn: Limit;
  readonly signInFailures: Limit;
  /** Beginning and coming back, which any page can have its visitor's browser do: so they take nothing from sign-in. */
  readonly oidcVisits: Limit;
  /** Switching the second factor off, which has a password hashed: how many wrong ones there may be is identity's to say, once each was looked at. */
  readonly twoFactorDisabling: Limit;
  readonly apiKeyCreation: Limit;
  readonly uploads: Limit;
  /** As many as uploads of files, and counted apart from them. */
  readonly avatarUploads: Limit;
}

export function createLimits(config: GatewayConfig): Limits {
  return {
    ip: { name: 'ip', max: config.RATE_LIMIT_IP_PER_MINUTE, windowMs: MINUTE_MS },
    principal: { name: 'principal', max: config.RATE_LIMIT_PRINCIPAL_PER_MINUTE, windowMs: MINUTE_MS },
    signUp: { name: 'sign-up', max: config.AUTH_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
    signIn: { name: 'sign-in', max: config.AUTH_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
    signInFailures: { name: 'sign-in-failures', max: config.SIGN_IN_FAILURES_PER_15_MINUTES, windowMs: 15 * MINUTE_MS },
    oidcVisits: { name: 'oidc-visits', max: config.AUTH_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
    twoFactorDisabling: { name: 'two-factor-disabling', max: config.AUTH_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
    apiKeyCreation: { name: 'api-key-creation', max: config.API_KEYS_CREATED_PER_HOUR, windowMs: 60 * MINUTE_MS },
    uploads: { name: 'uploads', max: config.UPLOAD_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
    avatarUploads: { name: 'avatar-uploads', max: config.UPLOAD_ATTEMPTS_PER_MINUTE, windowMs: MINUTE_MS },
  };
}
