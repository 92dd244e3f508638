/** Largest avatar, in bytes. */
export const AVATAR_BYTES_MAX = 3 * 1024 * 1024;

/** Most pixels of an uploaded avatar. */
export const AVATAR_PIXELS_MAX = 16_000_000;

/** Longest side of a stored avatar, in pixels. */
export const AVATAR_SIDE_MAX = 256;
