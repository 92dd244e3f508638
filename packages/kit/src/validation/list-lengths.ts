/** Most license levels of an application. */
export const LICENSE_LEVELS_MAX = 1_000;

/** Most applications that a management key lists. A key for more can be open to all. */
export const KEY_APPLICATIONS_MAX = 1_000;
