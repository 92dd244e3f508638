/** Most unfinished uploads of an account. */
export const UNFINISHED_UPLOADS_MAX = 4;

/** Longest `Upload-Metadata`, in characters. */
export const UPLOAD_METADATA_LENGTH_MAX = 4_096;

/** Time until an upload expires after its last chunk, and that its end is remembered. */
export const UPLOAD_LIFETIME_HOURS = 24;
