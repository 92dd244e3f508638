/** Lifetime of download URLs, in seconds. `min` is for REST: over gRPC, 1 second is the least. */
export const DOWNLOAD_URL_LIFETIME_S = { min: 30, max: 3_600, default: 300 } as const;
