export const IMAGE_REASONS = [
  'image_unsupported',
  'image_animated',
  'image_too_many_pixels',
  'image_side_too_long',
  'image_damaged',
  'image_undecodable',
] as const;

/** The image can't become an avatar. The decoder process does not load the catalogue. */
export class ImageRejected extends Error {
  override readonly name = 'ImageRejected';
  readonly reason: (typeof IMAGE_REASONS)[number];

  constructor(reason: ImageRejected['reason']) {
    super(reason);
    this.reason = reason;
  }
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const PNG_CHUNK_OVERHEAD = 12;
/**
 * Optional chunks that change the pixels. The others are removed before decoding: libpng would
 * decompress their texts, and 3 MiB of those take it more than 10 s.
 */
const PNG_VISIBLE_CHUNKS = new Set(['tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT', 'eXIf']);

const JPEG_START = Buffer.from('ffd8ff', 'hex');
const JPEG_END = Buffer.from('ffd9', 'hex');
const JPEG_SCAN = Buffer.from('ffda', 'hex');
/** Progressive pictures have about ten scans. Each costs a pass over the whole picture. */
const JPEG_SCANS_MAX = 100;

const RIFF_HEADER_BYTES = 8;

/**
 * Checks what sharp does not: that nothing but zeros follows the image, that a PNG is not animated,
 * and what would cost too much to decode. An animated WebP is rejected in convert-image.ts.
 *
 * @returns the bytes to decode
 * @throws ImageRejected
 */
export function checkImage(bytes: Buffer): Buffer {
  if (bytes.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return checkPng(bytes);
  if (bytes.subarray(0, JPEG_START.length).equals(JPEG_START)) return checkJpeg(bytes);
  if (!isRiff(bytes)) throw new ImageRejected('image_unsupported');
  requireEnd(bytes, riffSize(bytes));
  return bytes;
}

export const isWebp = (bytes: Buffer): boolean => isRiff(bytes) && riffSize(bytes) === bytes.length;

const isRiff = (bytes: Buffer) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
const riffSize = (bytes: Buffer) => RIFF_HEADER_BYTES + bytes.readUInt32LE(4);

function checkPng(bytes: Buffer): Buffer {
  const visible: Buffer[] = [PNG_SIGNATURE];
  for (let at = PNG_SIGNATURE.length, type = ''; type !== 'IEND'; ) {
    if (at + PNG_CHUNK_OVERHEAD > bytes.length) throw new ImageRejected('image_damaged');
    const end = at + PNG_CHUNK_OVERHEAD + bytes.readUInt32BE(at);
    type = bytes.toString('latin1', at + 4, at + 8);
    if (type === 'acTL') throw new ImageRejected('image_animated');
    // Types of critical chunks begin with a capital letter (PNG 5.4).
    if (PNG_VISIBLE_CHUNKS.has(type) || /^[A-Z]/.test(type)) visible.push(bytes.subarray(at, end));
    at = end;
    if (type === 'IEND') requireEnd(bytes, at);
  }
  return Buffer.concat(visible);
}

function checkJpeg(bytes: Buffer): Buffer {
  const end = bytes.lastIndexOf(JPEG_END);
  if (end === -1) throw new ImageRejected('image_damaged');
  requireEnd(bytes, end + JPEG_END.length);
  let scans = 0;
  for (let at = bytes.indexOf(JPEG_SCAN); at !== -1; at = bytes.indexOf(JPEG_SCAN, at + 2)) scans += 1;
  if (scans > JPEG_SCANS_MAX) throw new ImageRejected('image_undecodable');
  return bytes;
}

/** Zeros may follow, as some programs write them; anything else may be a second file. */
function requireEnd(bytes: Buffer, end: number): void {
  if (end > bytes.length || bytes.subarray(end).some((byte) => byte !== 0)) throw new ImageRejected('image_damaged');
}
