import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';

/** A picture of one colour. */
export function plainImage(width: number, height: number, channels: 3 | 4 = 3) {
  return sharp({ create: { width, height, channels, background: { r: 200, g: 30, b: 60, alpha: 1 } }, limitInputPixels: false });
}

/** A picture of noise, which does not compress. */
export function noiseImage(width: number, height: number) {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 40 };
  return sharp({ create: { width, height, channels: 3, background: '#000', noise } });
}

/** Bytes that are exactly so many: a picture with a comment in it that makes up the rest. */
export async function jpegOfSize(byteSize: number): Promise<Buffer> {
  const jpeg = await plainImage(64, 64).jpeg().toBuffer();
  const comments: Buffer[] = [];
  for (let left = byteSize - jpeg.length; left > 0; ) {
    // A segment has a marker, its length in two bytes and up to 65,533 others; what is left must not be too small for one.
    const segment = left <= 65_537 ? left : Math.min(65_537, left - 4);
    const comment = Buffer.alloc(segment, 'c');
    comment.writeUInt16BE(0xfffe, 0);
    comment.writeUInt16BE(segment - 2, 2);
    comments.push(comment);
    left -= segment;
  }
  return Buffer.concat([jpeg.subarray(0, 2), ...comments, jpeg.subarray(2)], byteSize);
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

/** A chunk of a PNG, with its check sum. */
export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** Puts a chunk into a PNG, behind its header. */
export function withPngChunk(png: Buffer, chunk: Buffer): Buffer {
  const afterHeader = 8 + 25;
  return Buffer.concat([png.subarray(0, afterHeader), chunk, png.subarray(afterHeader)]);
}

/** A PNG that says it is of some size, and has nothing to show for it but a few bytes. */
export function hollowPng(width: number, height: number): Buffer {
  return pngOf([width, height], [8, 2], Buffer.alloc(64));
}

/** A PNG with transparency and 16 bits to a channel, which takes more memory than any other. It is black and has few bytes. */
export function deepPng(width: number, height: number): Buffer {
  return pngOf([width, height], [16, 6], Buffer.alloc((width * 8 + 1) * height));
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

/** The chunks of a WebP by their names, in their order. */
export function webpChunks(webp: Buffer): string[] {
  const names: string[] = [];
  for (let at = 12; at < webp.length; ) {
    names.push(webp.toString('latin1', at, at + 4));
    const length = webp.readUInt32LE(at + 4);
    at += 8 + length + (length % 2);
  }
  return names;
}
