/** Most unfinished uploads of an account. */
export const UNFINISHED_UPLOADS_MAX = 4;

/** Longest `Upload-Metadata`, in characters. */
export const UPLOAD_METADATA_LENGTH_MAX = 4_096;

/** Time from the last chunk, of any size, until an unfinished upload expires or a finished one is forgotten. */
export const UPLOAD_LIFETIME_HOURS = 24;
