import sharp from 'sharp';
import { SIDE_MAX } from './converted-image.ts';

/** How good a WebP is made: at 256 x 256 nobody tells it from the original. More effort takes a tenth of all the time, and saves a fiftieth of the bytes. */
const WEBP = { quality: 82, alphaQuality: 90, effort: 2 } as const;

/** An image lives for one conversion: nothing of it is to be kept, and one thread at a time works on it. */
sharp.cache(false);
sharp.concurrency(1);
// Whatever the headers said, libvips tries no other format, and reads nothing but what it is handed.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: ['VipsForeignLoadJpegBuffer', 'VipsForeignLoadPngBuffer', 'VipsForeignLoadWebpBuffer'] });

/**
 * Makes a still WebP of an image, as large as it was and at most 256 x 256, the right way up, in sRGB and without any metadata.
 *
 * @throws Error where the image is not whole, or has more pixels than it may have
 */
export async function convertImage(bytes: Buffer, pixelsMax: number): Promise<Buffer> {
  return sharp(bytes, { failOn: 'warning', limitInputPixels: pixelsMax, sequentialRead: true })
    .autoOrient()
    .resize({ width: SIDE_MAX, height: SIDE_MAX, fit: 'inside', withoutEnlargement: true })
    .toColourspace('srgb')
    .webp(WEBP)
    .toBuffer();
}
