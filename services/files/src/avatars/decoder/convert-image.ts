import { AVATAR_SIDE_MAX } from '@latchkey/contract/avatar';
import sharp from 'sharp';
import { checkImage, ImageRejected } from './check-image.ts';

/**
 * Longest side of an upload; JPEG has no more. Decoders hold several rows: a PNG of 4,000,000 x 4
 * pixels in 124 KB took 3.6 GiB.
 */
const SIDE_MAX = 65_535;

/** Effort 2 instead of 4 takes a tenth less CPU, and 2 % more bytes. */
const WEBP = { quality: 82, alphaQuality: 90, effort: 2 } as const;

sharp.cache(false);
sharp.concurrency(1);
// libvips tries no other format, whatever the content is, and reads no files.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: ['VipsForeignLoadJpegBuffer', 'VipsForeignLoadPngBuffer', 'VipsForeignLoadWebpBuffer'] });

/**
 * Makes a still WebP of an image (specification 4.3): as large as the image and at most 256 x 256,
 * upright, in sRGB, without metadata. Throws ImageRejected.
 */
export async function convertImage(upload: Buffer, pixelsMax: number): Promise<Buffer> {
  const bytes = checkImage(upload);
  try {
    const { width, height, pages = 1 } = await sharp(bytes, { limitInputPixels: false }).metadata();
    if (pages > 1) throw new ImageRejected('image_animated');
    if (width * height > pixelsMax) throw new ImageRejected('image_too_many_pixels');
    if (Math.max(width, height) > SIDE_MAX) throw new ImageRejected('image_side_too_long');
    return await sharp(bytes, { failOn: 'warning', limitInputPixels: pixelsMax, sequentialRead: true })
      .autoOrient()
      .resize({ width: AVATAR_SIDE_MAX, height: AVATAR_SIDE_MAX, fit: 'inside', withoutEnlargement: true })
      .toColourspace('srgb')
      .webp(WEBP)
      .toBuffer();
  } catch (err) {
    throw err instanceof ImageRejected ? err : new ImageRejected('image_damaged');
  }
}
