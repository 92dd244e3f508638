/** Rows on a page of the files table. */
export const FILES_PAGE_SIZE = 10;

/** Rows on a page of the applications. */
export const APPLICATIONS_PAGE_SIZE = 50;

/** Keys on a page. Each may name 1,000 applications, and 20 fit in a message of 1 MiB. */
export const API_KEYS_PAGE_SIZE = 20;

/** Entries on a page of the audit log. */
export const AUDIT_PAGE_SIZE = { max: 100, default: 50 } as const;

/** Days that usage and requests are stored for, the current one included. */
export const USAGE_DAYS_MAX = 90;

/** Largest JSON body, in KiB. */
export const JSON_BODY_KIB_MAX = 64;

/** Lifetime of download URLs, in seconds. Services may ask for less than `min`. */
export const DOWNLOAD_URL_LIFETIME_S = { min: 30, max: 3_600, default: 300 } as const;

/** Largest avatar, in bytes. */
export const AVATAR_BYTES_MAX = 3 * 1024 * 1024;

/** Longest reuse of a principal (authentication.proto, `AuthenticateResponse.epoch_key`). */
export const PRINCIPAL_AGE_MS_MAX = 3_000;
