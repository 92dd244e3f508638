import { inspectWebp, isWebp } from '../image/webp.ts';

/** Longest side of what is stored (specification 2.6). */
export const SIDE_MAX = 256;

/** What the length in a RIFF header does not count. */
const RIFF_HEADER_BYTES = 8;

/**
 * Whether bytes are what may be stored for an avatar: one still WebP of at most 256 x 256, and nothing behind it. They come from a process that a
 * stranger's image may have taken over.
 */
export function isConverted(bytes: Buffer): boolean {
  try {
    if (!isWebp(bytes) || RIFF_HEADER_BYTES + bytes.readUInt32LE(4) !== bytes.length) return false;
    const { width, height } = inspectWebp(bytes);
    return width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX;
  } catch {
    return false;
  }
}
