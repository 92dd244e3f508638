import sharp from 'sharp';

sharp.cache(false);
sharp.concurrency(1);

/** What the service does to an image, by itself, with the effort that the library makes unless told otherwise. */
export function convertBare(photo: Buffer): Promise<Buffer> {
  return sharp(photo, { failOn: 'warning', sequentialRead: true })
    .autoOrient()
    .resize({ width: 256, height: 256, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 82, alphaQuality: 90, effort: 4 })
    .toBuffer();
}
