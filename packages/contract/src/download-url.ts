/** Lifetime of download URLs, in seconds. Services may ask for less than `min`. */
export const DOWNLOAD_URL_LIFETIME_S = { min: 30, max: 3_600, default: 300 } as const;
