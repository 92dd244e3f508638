/**
 * Most rows on a page of apps over gRPC, and their number by default. Cursors: `page-token.ts` of
 * apps, `audit-cursor.ts` of the gateway.
 */
export const RPC_PAGE_SIZE_MAX = 1_000;

/** Rows on a page of the files table. REST always uses the default. */
export const FILES_PAGE_SIZE = { max: 100, default: 10 } as const;

/** Rows on a page of the applications. */
export const APPLICATIONS_PAGE_SIZE = 50;

/** Keys on a page. With as many applications as they may list, they take up to 1 MiB. */
export const API_KEYS_PAGE_SIZE = 20;

/** Entries on a page of the audit log. */
export const AUDIT_PAGE_SIZE = { max: 100, default: 50 } as const;

/** Most releases of a list, which has the newest. */
export const RELEASES_LISTED_MAX = 100;
/** Their notes and files in all, in KB: more would delay other requests. */
export const RELEASES_LISTED_KB_MAX = 1_000;

/** Most events of a pull. */
export const EVENTS_PULLED_MAX = 100;

/** Most sessions of a list, which has those used last. */
export const SESSIONS_LISTED_MAX = 100;
