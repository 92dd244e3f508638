/** Largest avatar, in bytes. */
export const AVATAR_BYTES_MAX = 3 * 1024 * 1024;
