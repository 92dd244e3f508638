import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { integerSetting } from '@latchkey/kit/config/settings';
import { type DomainError, waitSeconds } from '@latchkey/kit/errors/errors';
import { rateLimitPolicy, rateLimitState } from '@latchkey/kit/http/rate-limit-headers';
import { Counter } from '@latchkey/kit/telemetry/metrics';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { errors } from '../errors.ts';

const MINUTE_MS = 60_000;
const LIMIT_MAX = 1_000_000_000;
const limit = integerSetting(1, LIMIT_MAX);

export const rateLimitSettings = {
  RATE_LIMIT_IP_PER_MINUTE: limit.default(DEFAULT_LIMITS.RATE_LIMIT_IP_PER_MINUTE),
  RATE_LIMIT_PRINCIPAL_PER_MINUTE: limit.default(DEFAULT_LIMITS.RATE_LIMIT_PRINCIPAL_PER_MINUTE),
  AUTH_ATTEMPTS_PER_MINUTE: limit.default(DEFAULT_LIMITS.AUTH_ATTEMPTS_PER_MINUTE),
  SIGN_IN_FAILURES_PER_15_MINUTES: limit.default(DEFAULT_LIMITS.SIGN_IN_FAILURES_PER_15_MINUTES),
  API_KEYS_CREATED_PER_HOUR: limit.default(DEFAULT_LIMITS.API_KEYS_CREATED_PER_HOUR),
  UPLOAD_ATTEMPTS_PER_MINUTE: limit.default(DEFAULT_LIMITS.UPLOAD_ATTEMPTS_PER_MINUTE),
  UPDATE_FEEDS_PER_MINUTE: limit.default(DEFAULT_LIMITS.UPDATE_FEEDS_PER_MINUTE),
};

/** Requests or failures allowed in a window, which begins with the first of them. */
export interface Limit {
  /** Name in the `RateLimit` headers, and of the counters. */
  readonly name: string;
  readonly max: number;
  readonly windowMs: number;
}

export type LimitState = ReturnType<typeof toLimitState>;

export type RateLimits = ReturnType<typeof createRateLimits>;

/** Apps counts the rotations of runtime keys itself (its `runtime-key/runtime-key.ts`). */
export function createRateLimits(config: z.output<z.ZodObject<typeof rateLimitSettings>>) {
  const perMinute = (name: string, max: number): Limit => ({ name, max, windowMs: MINUTE_MS });
  const attempts = config.AUTH_ATTEMPTS_PER_MINUTE;
  const failures = config.SIGN_IN_FAILURES_PER_15_MINUTES;
  return {
    ip: perMinute('ip', config.RATE_LIMIT_IP_PER_MINUTE),
    principal: perMinute('principal', config.RATE_LIMIT_PRINCIPAL_PER_MINUTE),
    signUp: perMinute('sign-up', attempts),
    signIn: perMinute('sign-in', attempts),
    signInFailures: { name: 'sign-in-failures', max: failures, windowMs: 15 * MINUTE_MS } as Limit,
    // Separate from sign-in: any page can make its visitors use these.
    oidcVisits: perMinute('oidc-visits', attempts),
    tokenExchange: perMinute('token-exchange', attempts),
    twoFactorDisabling: perMinute('two-factor-disabling', attempts),
    apiKeyCreation: { name: 'api-key-creation', max: config.API_KEYS_CREATED_PER_HOUR, windowMs: 60 * MINUTE_MS } as Limit,
    uploads: perMinute('uploads', config.UPLOAD_ATTEMPTS_PER_MINUTE),
    updateFeeds: perMinute('update-feeds', config.UPDATE_FEEDS_PER_MINUTE),
    avatarUploads: perMinute('avatar-uploads', config.UPLOAD_ATTEMPTS_PER_MINUTE),
  };
}

/** @param count events in the window, this one included */
export function toLimitState(limit: Limit, count: number, resetMs: number) {
  return { limit, allowed: count <= limit.max, remaining: Math.max(0, limit.max - count), resetMs: Math.max(0, resetMs) };
}

/** The limit that rejected; else the one with fewer left. */
export function tighter(a: LimitState, b: LimitState): LimitState {
  if (!b.allowed) return b;
  return !a.allowed || a.remaining <= b.remaining ? a : b;
}

const rejections = new Counter({
  name: 'latchkey_rate_limit_rejections_total',
  help: 'Requests that a limit rejected, by the name of the limit in the RateLimit headers.',
  labels: ['limit'],
});

export function limitReached({ limit, resetMs }: LimitState): DomainError {
  rejections.add(1, limit.name);
  const { name: policy, max, windowMs } = limit;
  return errors.rate_limit_reached({ policy, limit: max, windowMs, retryMs: resetMs });
}

/** The error of a limit on concurrent use; the client waits for its `windowMs`. */
export const concurrencyReached = (limit: Limit): DomainError => limitReached(toLimitState(limit, limit.max + 1, limit.windowMs));

export function setLimitHeaders(reply: FastifyReply, { limit, remaining, resetMs }: LimitState): void {
  reply.header('ratelimit-policy', rateLimitPolicy(limit.name, limit.max, limit.windowMs / 1000));
  reply.header('ratelimit', rateLimitState(limit.name, remaining, waitSeconds(resetMs)));
}
