/** Longest overlap of a rotated key and its successor, in seconds. */
export const KEY_OVERLAP_SECONDS_MAX = 7 * 86_400;
