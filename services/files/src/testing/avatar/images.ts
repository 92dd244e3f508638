import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';

/** An image of one colour. */
export function plainImage(width: number, height: number, channels: 3 | 4 = 3) {
  return sharp({ create: { width, height, channels, background: { r: 200, g: 30, b: 60, alpha: 1 } }, limitInputPixels: false });
}

/** An image of noise, which does not compress. */
export function noiseImage(width: number, height: number) {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 40 };
  return sharp({ create: { width, height, channels: 3, background: '#000', noise } });
}

/** A small animation. */
export async function animatedWebp(): Promise<Buffer> {
  const frames = await Promise.all(
    ['red', 'blue'].map((background) =>
      sharp({ create: { width: 32, height: 32, channels: 4, background } })
        .png()
        .toBuffer(),
    ),
  );
  return sharp(frames, { join: { animated: true } })
    .webp()
    .toBuffer();
}

/** A PNG chunk with its checksum. */
export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** Inserts a chunk after the header of a PNG. */
export function withPngChunk(png: Buffer, chunk: Buffer): Buffer {
  const afterHeader = 8 + 25;
  return Buffer.concat([png.subarray(0, afterHeader), chunk, png.subarray(afterHeader)]);
}

/** A PNG whose header claims a size, with a few bytes of pixels. */
export function hollowPng(width: number, height: number): Buffer {
  return pngOf([width, height], [8, 2], Buffer.alloc(64));
}

/** A black PNG with transparency, 16-bit channels and a profile, which takes the most memory. */
export async function heavyPng(width: number, height: number): Promise<Buffer> {
  const { icc } = await sharp(await plainImage(2, 2).withIccProfile('p3').png().toBuffer()).metadata();
  const profile = Buffer.concat([Buffer.from('p3\0\0'), deflateSync(icc as Buffer)]);
  const png = pngOf([width, height], [16, 6], Buffer.alloc((width * 8 + 1) * height));
  return withPngChunk(png, pngChunk('iCCP', profile));
}

function pngOf([width, height]: [number, number], [bits, colourType]: [number, number], rows: Buffer): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, colourType, 0, 0, 0], 8);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const pixels = deflateSync(rows, { level: 1 });
  return Buffer.concat([signature, pngChunk('IHDR', header), pngChunk('IDAT', pixels), pngChunk('IEND', Buffer.alloc(0))]);
}

/** The names of a WebP's chunks. */
export function webpChunks(webp: Buffer): string[] {
  const names: string[] = [];
  for (let at = 12; at < webp.length; ) {
    names.push(webp.toString('latin1', at, at + 4));
    const length = webp.readUInt32LE(at + 4);
    at += 8 + length + (length % 2);
  }
  return names;
}
