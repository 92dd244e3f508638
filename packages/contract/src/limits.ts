/** Mails with a link in an hour, for an account and for an address. */
export const MAILS_PER_HOUR_MAX = 5;

/** Lifetime of the link in a mail. */
export const MAIL_LINK_MINUTES = 30;

/** Age of a session up to which it proves an owner without a password. */
export const FRESH_SESSION_MINUTES = 10;

/** Events of an application that live clients can read again: the newest, up to an age. */
export const EVENTS_RETAINED: { readonly count: number; readonly hours: number } = { count: 1_000, hours: 24 };

/** Days that usage and requests are stored for, the current one included. */
export const USAGE_DAYS_MAX = 90;

/** Largest JSON body, in KiB. */
export const JSON_BODY_KIB_MAX = 64;

/** Most applications that a management key lists. A key for more can be open to all. */
export const KEY_APPLICATIONS_MAX = 1_000;

/** Newest revoked and expired management keys that an account keeps. */
export const INACTIVE_API_KEYS_MAX = 200;
