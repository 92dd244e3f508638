/** Most unfinished uploads of an account. */
export const UNFINISHED_UPLOADS_MAX = 4;

/** Longest `Upload-Metadata`, in characters. */
export const UPLOAD_METADATA_LENGTH_MAX = 4_096;

/**
 * An unfinished upload expires, and a finished one is forgotten, this long after its last chunk. A
 * chunk may have any size.
 */
export const UPLOAD_LIFETIME_HOURS = 24;
