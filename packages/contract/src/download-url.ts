/** Lifetime of download URLs, in seconds. `min` is that of REST: services may ask for a second. */
export const DOWNLOAD_URL_LIFETIME_S = { min: 30, max: 3_600, default: 300 } as const;
