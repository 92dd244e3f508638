import { ImageRefused, type ImageSize, requireWhole } from './image-fault.ts';
import { requirePadding } from './polyglot.ts';

const HEADER_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
const ANIMATION_FLAG = 0x02;
const VP8_START = Buffer.from('9d012a', 'hex');
const VP8L_SIGNATURE = 0x2f;

export function isWebp(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, HEADER_BYTES) === 'WEBP';
}

/**
 * The size of a WebP (RFC 9649).
 *
 * @throws ImageRefused where its chunks are not whole, disagree about the size, or are followed by anything, and for an animation
 */
export function inspectWebp(bytes: Buffer): ImageSize {
  const end = CHUNK_HEADER_BYTES + bytes.readUInt32LE(4);
  requireWhole(bytes.length >= HEADER_BYTES + CHUNK_HEADER_BYTES && end <= bytes.length);
  let canvas: ImageSize | undefined;
  let picture: ImageSize | undefined;
  for (let at = HEADER_BYTES; at < end; ) {
    requireWhole(at + CHUNK_HEADER_BYTES <= end);
    const type = bytes.toString('latin1', at, at + 4);
    const length = bytes.readUInt32LE(at + 4);
    const data = bytes.subarray(at + CHUNK_HEADER_BYTES, at + CHUNK_HEADER_BYTES + length);
    // The data are padded to an even length, which the last chunk of some files is not.
    at += CHUNK_HEADER_BYTES + length + (length % 2);
    requireWhole(data.length === length && at <= end + 1);
    if (type === 'ANIM' || type === 'ANMF') throw new ImageRefused('animated');
    if (type === 'VP8X') {
      requireWhole(canvas === undefined && picture === undefined);
      canvas = readCanvas(data);
    } else if (type === 'VP8 ' || type === 'VP8L') {
      requireWhole(picture === undefined);
      picture = type === 'VP8 ' ? readLossy(data) : readLossless(data);
    }
  }
  requireWhole(picture !== undefined);
  requireWhole(canvas === undefined || (canvas.width === picture.width && canvas.height === picture.height));
  requirePadding(bytes, end);
  return picture;
}

function readCanvas(data: Buffer): ImageSize {
  requireWhole(data.length >= 10);
  if (((data[0] as number) & ANIMATION_FLAG) !== 0) throw new ImageRefused('animated');
  return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 };
}

/** A key frame (RFC 6386, 9.1), whose upper two bits of each length only say how to scale it. */
function readLossy(data: Buffer): ImageSize {
  requireWhole(data.length >= 10 && ((data[0] as number) & 1) === 0 && data.subarray(3, 6).equals(VP8_START));
  return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff };
}

function readLossless(data: Buffer): ImageSize {
  requireWhole(data.length >= 5 && data[0] === VP8L_SIGNATURE);
  const bits = data.readUInt32LE(1);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}
