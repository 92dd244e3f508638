import { ImageRefused, type ImageSize, requireWhole } from './image-fault.ts';
import { inspectJpeg, isJpeg } from './jpeg.ts';
import { inspectPng, isPng } from './png.ts';
import { refusePolyglot } from './polyglot.ts';
import { inspectWebp, isWebp } from './webp.ts';

/**
 * Longest side, which is what JPEG knows of; of WebP it is 16,383. A PNG could have one row of 16 million pixels, and decoders hold several rows at once,
 * as wide as they are: a file of 124 KB took 3.6 GiB.
 */
const SIDE_MAX = 65_535;

/** What an image may be. */
export interface ImageBounds {
  readonly pixelsMax: number;
}

/** An image that may be decoded. */
export interface InspectedImage extends ImageSize {
  readonly format: 'png' | 'jpeg' | 'webp';
  /** The image without what no decoder needs. */
  readonly bytes: Buffer;
}

/**
 * Looks at an image without decoding it: what it is by its content, whether it is whole and nothing else besides, one still picture, and how large it
 * says it is (specification 4.2). What a header says is held to what the decoder finds later, which has the same bound.
 *
 * @throws ImageRefused
 */
export function inspectImage(bytes: Buffer, { pixelsMax }: ImageBounds): InspectedImage {
  const image = readImage(bytes);
  requireWhole(image.width > 0 && image.height > 0);
  if (image.width * image.height > pixelsMax) throw new ImageRefused('too_many_pixels');
  if (Math.max(image.width, image.height) > SIDE_MAX) throw new ImageRefused('side_too_long');
  refusePolyglot(bytes);
  return image;
}

function readImage(bytes: Buffer): InspectedImage {
  if (isPng(bytes)) return { format: 'png', ...inspectPng(bytes) };
  if (isJpeg(bytes)) return { format: 'jpeg', bytes, ...inspectJpeg(bytes) };
  if (isWebp(bytes)) return { format: 'webp', bytes, ...inspectWebp(bytes) };
  throw new ImageRefused('unsupported');
}
