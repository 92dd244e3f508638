import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  animatedWebp,
  hollowPng,
  noiseImage,
  plainImage,
  pngChunk,
  webpChunks,
  withPngChunk,
} from '../../testing/avatar/images.ts';
import { ImageRejected } from './check-image.ts';
import { convertImage } from './convert-image.ts';

/** The avatar's format and size, or why the image is rejected. */
async function resultOf(image: Buffer): Promise<string> {
  try {
    const { format, width, height } = await sharp(await convertImage(image, 16_000_000)).metadata();
    return `${format} ${width}x${height}`;
  } catch (err) {
    if (err instanceof ImageRejected) return err.reason;
    throw err;
  }
}

/** The colour in the middle of an avatar, with alpha. */
async function colourOf(image: Buffer): Promise<number[]> {
  const { data, info } = await sharp(await convertImage(image, 16_000_000))
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const at = ((info.height >> 1) * info.width + (info.width >> 1)) * 4;
  return [...data.subarray(at, at + 4)];
}

const isNear = (a: readonly number[], b: readonly number[], by = 6) => a.every((value, i) => Math.abs(value - (b[i] ?? 0)) <= by);

let png: Buffer;
let jpeg: Buffer;
let progressive: Buffer;
let webp: Buffer;
beforeAll(async () => {
  png = await noiseImage(300, 200).png().toBuffer();
  jpeg = await noiseImage(300, 200).jpeg().toBuffer();
  progressive = await noiseImage(300, 200).jpeg({ progressive: true }).toBuffer();
  webp = await noiseImage(300, 200).webp().toBuffer();
});

describe('an avatar', () => {
  it.each([
    [1_600, 1_200, 'webp 256x192'],
    [150, 2_000, 'webp 19x256'],
    [257, 100, 'webp 256x100'],
    [100, 40, 'webp 100x40'],
    [1, 1, 'webp 1x1'],
    [8_000, 1, 'webp 256x1'],
  ])('of an image of %i x %i fits in 256 x 256, in its proportions, never enlarged', async (width, height, expected) => {
    expect(await resultOf(await plainImage(width, height).png().toBuffer())).toBe(expected);
    expect(await resultOf(await plainImage(width, height).webp().toBuffer())).toBe(expected);
    expect(await resultOf(await plainImage(width, height).jpeg().toBuffer())).toBe(expected);
  });

  it.each(['jpeg', 'webp', 'png'] as const)('is upright, from a %s that the camera took on its side', async (format) => {
    const red = { create: { width: 40, height: 80, channels: 3, background: '#f00' } } as const;
    const image = await sharp(red).withMetadata({ orientation: 6 }).toFormat(format).toBuffer();
    expect(await resultOf(image)).toBe('webp 80x40');
  });

  it.each(['jpeg', 'png', 'webp'] as const)('of a %s has no metadata', async (format) => {
    const secret = 'taken-at-home';
    const image = await noiseImage(300, 200)
      .withIccProfile('p3')
      .withExif({ IFD0: { Copyright: secret }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
      .withXmp(`<x:xmpmeta xmlns:x="adobe:ns:meta/">${secret}</x:xmpmeta>`)
      .toFormat(format)
      .toBuffer();
    expect(image.includes(secret)).toBe(true);
    expect(webpChunks(await convertImage(image, 16_000_000))).toEqual(['VP8 ']);
  });

  it('has the colours of the image', async () => {
    const red = await plainImage(64, 64).png().toBuffer();
    const images = {
      'wide colours': await sharp(red).withIccProfile('p3').png().toBuffer(),
      '16 bits': await sharp(red).toColourspace('rgb16').png().toBuffer(),
      palette: await sharp(red).png({ palette: true }).toBuffer(),
    };
    for (const [name, image] of Object.entries(images)) {
      expect(isNear(await colourOf(image), [200, 30, 60, 255]), name).toBe(true);
    }
    const cmyk = await sharp(red).toColourspace('cmyk').jpeg({ quality: 95 }).toBuffer();
    expect(isNear(await colourOf(cmyk), [200, 30, 60, 255], 25)).toBe(true);
    const clear = sharp({ create: { width: 64, height: 64, channels: 4, background: { r: 200, g: 30, b: 60, alpha: 0.5 } } });
    expect(isNear(await colourOf(await clear.png().toBuffer()), [200, 30, 60, 128])).toBe(true);
  });
});

describe('rejects', () => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
  const html = Buffer.from('<html><script>alert(1)</script></html>');
  const jpegWithScans = (count: number) =>
    Buffer.concat([jpeg.subarray(0, -2), Buffer.alloc(2 * count, Buffer.from('ffda', 'hex')), jpeg.subarray(-2)]);
  const hugeJpeg = () => {
    const image = Buffer.from(jpeg);
    image.fill(0x4e, image.indexOf(Buffer.from('ffc0', 'hex')) + 5, image.indexOf(Buffer.from('ffc0', 'hex')) + 9);
    return image;
  };
  const hugeWebp = () => {
    const image = Buffer.from(webp);
    image.fill(0x3f, image.indexOf(Buffer.from('9d012a', 'hex')) + 3, image.indexOf(Buffer.from('9d012a', 'hex')) + 7);
    return image;
  };
  const changed = (image: Buffer, at: number) => image.with(at, (image[at] as number) ^ 1);
  const holed = (image: Buffer) => Buffer.from(image.toString('latin1'), 'latin1').fill(0, image.length >> 1, image.length - 2);

  it.each<[string, string, () => Buffer | Uint8Array | Promise<Buffer>]>([
    ['nothing', 'image_unsupported', () => Buffer.alloc(0)],
    ['text', 'image_unsupported', () => Buffer.from('not an image')],
    ['SVG', 'image_unsupported', () => Buffer.from(svg)],
    ['GIF', 'image_unsupported', () => plainImage(9, 9).gif().toBuffer()],
    ['TIFF', 'image_unsupported', () => plainImage(9, 9).tiff().toBuffer()],
    ['AVIF', 'image_unsupported', () => plainImage(9, 9).avif().toBuffer()],
    ['PDF', 'image_unsupported', () => Buffer.from('%PDF-1.7\n%%EOF')],
    ['WAV', 'image_unsupported', () => Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVEfmt '), Buffer.alloc(40)])],
    ['an animated WebP', 'image_animated', animatedWebp],
    ['an animated PNG', 'image_animated', () => withPngChunk(png, pngChunk('acTL', Buffer.from('0000000200000000', 'hex')))],
    ['a PNG of 4,001 x 4,000', 'image_too_many_pixels', () => hollowPng(4_001, 4_000)],
    ['a PNG of 20,000 x 20,000', 'image_too_many_pixels', () => hollowPng(20_000, 20_000)],
    ['a JPEG of 20,046 x 20,046', 'image_too_many_pixels', hugeJpeg],
    ['a WebP of 16,191 x 16,191', 'image_too_many_pixels', hugeWebp],
    ['a PNG of 4,000,000 x 4', 'image_side_too_long', () => hollowPng(4_000_000, 4)],
    ['a PNG without height', 'image_damaged', () => hollowPng(10, 0)],
    ['a PNG of 2³² - 1 in square', 'image_damaged', () => hollowPng(0xffffffff, 0xffffffff)],
    ['a PNG without its pixels', 'image_damaged', () => hollowPng(4_000, 4_000)],
    ['a PNG with a wrong checksum', 'image_damaged', () => Buffer.from(changed(png, 2_000))],
    ['a PNG with two headers', 'image_damaged', () => withPngChunk(png, png.subarray(8, 33))],
    ['a JPEG with a hole', 'image_damaged', () => holed(jpeg)],
    ['a JPEG with 101 scans', 'image_undecodable', () => jpegWithScans(100)],
    ['a PNG and HTML', 'image_damaged', () => Buffer.concat([png, html])],
    ['a JPEG and HTML', 'image_damaged', () => Buffer.concat([jpeg, html])],
    ['a WebP and HTML', 'image_damaged', () => Buffer.concat([webp, html])],
  ])('%s as %s', async (_what, reason, make) => {
    expect(await resultOf(Buffer.from(await make()))).toBe(reason);
  });

  it('every truncated image', async () => {
    for (const image of [png, jpeg, progressive, webp]) {
      const lengths = [
        12,
        100,
        1_000,
        image.length >> 1,
        image.length - 20,
        image.length - 12,
        image.length - 2,
        image.length - 1,
      ];
      for (const length of lengths) expect(await resultOf(image.subarray(0, length)), `${length}`).toBe('image_damaged');
    }
  });
});

describe('accepts', () => {
  it('zeros behind an image, and further whole JPEGs, as cameras write them', async () => {
    for (const image of [png, jpeg, webp]) expect(await resultOf(Buffer.concat([image, Buffer.alloc(100)]))).toBe('webp 256x171');
    expect(await resultOf(Buffer.concat([jpeg, Buffer.alloc(3), progressive]))).toBe('webp 256x171');
  });

  it('what hides in metadata, and stores none of it', async () => {
    const hidden = withPngChunk(png, pngChunk('tEXt', Buffer.from('Comment\0<script>%PDF-1.7')));
    expect((await convertImage(hidden, 16_000_000)).includes('script')).toBe(false);
  });

  it('compressed text without decompressing it, and a million empty chunks', async () => {
    const bomb = deflateSync(Buffer.alloc(50 * 1024 * 1024), { level: 9 });
    const text = pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), bomb]));
    const startedAt = performance.now();
    expect(await resultOf(withPngChunk(png, Buffer.concat(Array.from({ length: 60 }, () => text))))).toBe('webp 256x171');
    const empty = pngChunk('teXt', Buffer.alloc(0));
    expect(await resultOf(withPngChunk(png, Buffer.concat(Array.from({ length: 200_000 }, () => empty))))).toBe('webp 256x171');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
