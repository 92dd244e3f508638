/** Days that usage and requests are stored for, the current one included. */
export const USAGE_DAYS_MAX = 90;

/** Largest JSON body, in KiB. */
export const JSON_BODY_KIB_MAX = 64;

/** Most applications that a management key lists. A key for more can be open to all. */
export const KEY_APPLICATIONS_MAX = 1_000;
