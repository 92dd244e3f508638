/**
 * Headers of every answer but the request's id. Answers hold keys and settings: no cache may keep them, and no browser may take them for
 * anything but what they are. What serves files sets its own `cache-control` after.
 */
export const STANDARD_HEADERS = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } as const;
