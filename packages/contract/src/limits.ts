/**
 * Defaults of the limits that operators set. The service that has a limit reads the setting of the
 * same name.
 */
export const DEFAULT_LIMITS = {
  RATE_LIMIT_IP_PER_MINUTE: 600,
  RATE_LIMIT_PRINCIPAL_PER_MINUTE: 300,
  AUTH_ATTEMPTS_PER_MINUTE: 10,
  SIGN_IN_FAILURES_PER_15_MINUTES: 10,
  TWO_FACTOR_FAILURES_PER_15_MINUTES: 5,
  UPLOAD_ATTEMPTS_PER_MINUTE: 10,
  UPDATE_FEEDS_PER_MINUTE: 120,
  API_KEYS_CREATED_PER_HOUR: 10,
  RUNTIME_KEY_ROTATIONS_PER_HOUR: 2,
  ACTIVE_API_KEYS_LIMIT: 20,
  APPLICATIONS_LIMIT: 200,
  STORAGE_ALLOWANCE_MIB: 1_024,
  FILE_COUNT_LIMIT: 100,
  FILE_SIZE_LIMIT_MIB: 150,
  UPLOAD_DEADLINE_SECONDS: 180,
  SOCKETS_MAX: 20_000,
  SOCKETS_PER_IP: 10_000,
  SOCKETS_PER_APPLICATION: 10_000,
} as const;

/** Mails with a link in an hour, for an account and for an address. */
export const MAILS_PER_HOUR_MAX = 5;

/** Days that usage and requests are stored for, the current one included. */
export const USAGE_DAYS_MAX = 90;

/** Largest JSON body, in KiB. */
export const JSON_BODY_KIB_MAX = 64;

/** Most applications that a management key lists. A key for more can be open to all. */
export const KEY_APPLICATIONS_MAX = 1_000;

/** Newest revoked and expired management keys that an account keeps. */
export const INACTIVE_API_KEYS_MAX = 200;
