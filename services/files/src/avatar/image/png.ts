import { ImageRefused, type ImageSize, requireWhole } from './image-fault.ts';
import { requirePadding } from './polyglot.ts';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const IHDR_BYTES = 13;
/** Length, type and check sum of a chunk. */
const CHUNK_OVERHEAD_BYTES = 12;
const PIXELS = 'IDAT';
const END = 'IEND';

/**
 * Chunks that tell how the picture looks. Others go before the decoder sees them: text may be compressed a thousandfold. A chunk whose name begins with
 * a capital letter is critical (PNG 5.4), and for the decoder to know.
 */
const KEPT = new Set(['tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT', 'eXIf']);
/** The largest profiles in use, those of printers, have some 2 MiB uncompressed. */
const PROFILE_BYTES_MAX = 1024 * 1024;

export function isPng(bytes: Buffer): boolean {
  return bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE);
}

/**
 * The size of a PNG and its bytes without what is not to be seen.
 *
 * @throws ImageRefused where its chunks are not whole, in the order that they have to be in, or followed by anything, and for an animation: only this
 *   tells, as the decoder takes the first picture of it for the whole
 */
export function inspectPng(bytes: Buffer): ImageSize & { readonly bytes: Buffer } {
  const kept = new KeptParts(bytes);
  let size: ImageSize | undefined;
  let hasPixels = false;
  for (let at = SIGNATURE.length; ; ) {
    requireWhole(at + CHUNK_OVERHEAD_BYTES <= bytes.length);
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    const end = at + CHUNK_OVERHEAD_BYTES + length;
    requireWhole(end <= bytes.length && (size === undefined) === (type === 'IHDR'));
    size ??= readSize(bytes, at + 8, length);
    if (type === 'acTL' && !hasPixels) throw new ImageRefused('animated');
    if (type === 'iCCP' && length > PROFILE_BYTES_MAX) throw new ImageRefused('damaged');
    if (type === PIXELS) hasPixels = true;
    if (!KEPT.has(type) && !isCritical(type)) kept.leaveOut(at, end);
    at = end;
    if (type !== END) continue;
    requireWhole(hasPixels);
    requirePadding(bytes, at);
    return { ...size, bytes: kept.upTo(at) };
  }
}

function readSize(bytes: Buffer, at: number, length: number): ImageSize {
  requireWhole(length === IHDR_BYTES);
  return { width: bytes.readUInt32BE(at), height: bytes.readUInt32BE(at + 4) };
}

function isCritical(type: string): boolean {
  return type >= 'A' && type < '[';
}

/** What is left of bytes without some parts, copied only where there are any. There may be a part to leave out every few bytes. */
class KeptParts {
  readonly #bytes: Buffer;
  #copy: Buffer | undefined;
  #copied = 0;
  #keptFrom = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  leaveOut(start: number, end: number): void {
    this.#take(start);
    this.#keptFrom = end;
  }

  upTo(end: number): Buffer {
    if (this.#copy === undefined && end === this.#bytes.length) return this.#bytes;
    return this.#take(end).subarray(0, this.#copied);
  }

  #take(end: number): Buffer {
    this.#copy ??= Buffer.allocUnsafe(this.#bytes.length);
    this.#copied += this.#bytes.copy(this.#copy, this.#copied, this.#keptFrom, end);
    return this.#copy;
  }
}
