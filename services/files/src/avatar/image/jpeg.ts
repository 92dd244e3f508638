import { ImageRefused, type ImageSize, requireWhole } from './image-fault.ts';
import { paddingEnd } from './polyglot.ts';

const MARKER = 0xff;
const START = 0xd8;
const END = 0xd9;
const SCAN = 0xda;
/** Frames that browsers show: baseline, extended and progressive, in Huffman coding. */
const FRAMES = new Set([0xc0, 0xc1, 0xc2]);
/** Other frames: lossless, hierarchical, arithmetic. Between them lie the tables of codes, which are none. */
const isOtherFrame = (code: number) => code >= 0xc3 && code <= 0xcf && code !== 0xc4 && code !== 0xc8 && code !== 0xcc;
/** Markers inside of a scan: an escaped 0xff, and places to restart at. */
const isInScan = (code: number) => code === 0 || (code >= 0xd0 && code <= 0xd7);

/** A progressive picture has about ten scans. Each costs a pass over all of it, and may have a few bytes only. */
const SCANS_MAX = 100;
/** Cameras put a few smaller versions, or a map of brightness, behind a picture (CIPA DC-007). */
const PICTURES_MAX = 16;

export function isJpeg(bytes: Buffer): boolean {
  return startsPicture(bytes, 0);
}

/**
 * The size of a JPEG. Behind it may be further whole JPEGs, which are not looked at by the decoder, and nothing else.
 *
 * @throws ImageRefused where it is not whole, or not of a kind that browsers show
 */
export function inspectJpeg(bytes: Buffer): ImageSize {
  let found: ImageSize | undefined;
  let at = 0;
  for (let pictures = 0; at < bytes.length; pictures += 1) {
    requireWhole(pictures < PICTURES_MAX && startsPicture(bytes, at));
    const picture = readPicture(bytes, at);
    found ??= picture;
    at = paddingEnd(bytes, picture.end);
  }
  requireWhole(found !== undefined);
  return { width: found.width, height: found.height };
}

function startsPicture(bytes: Buffer, at: number): boolean {
  return bytes[at] === MARKER && bytes[at + 1] === START && bytes[at + 2] === MARKER;
}

/** Reads the segments of one picture, from its start to its end. */
function readPicture(bytes: Buffer, start: number): ImageSize & { readonly end: number } {
  let size: ImageSize | undefined;
  let scans = 0;
  for (let at = start + 2; ; ) {
    const { code, next } = readMarker(bytes, at);
    if (code === END) {
      requireWhole(size !== undefined && scans > 0);
      return { ...size, end: next };
    }
    // No length follows a marker that stands alone, of which none has a place here.
    requireWhole(next + 2 <= bytes.length && code !== START && code > 0x01 && !isInScan(code));
    const end = next + bytes.readUInt16BE(next);
    requireWhole(end >= next + 2 && end <= bytes.length);
    if (isOtherFrame(code)) throw new ImageRefused('unsupported');
    if (FRAMES.has(code)) {
      requireWhole(size === undefined && end - next >= 8);
      size = { height: bytes.readUInt16BE(next + 3), width: bytes.readUInt16BE(next + 5) };
    }
    at = end;
    if (code !== SCAN) continue;
    scans += 1;
    requireWhole(size !== undefined && scans <= SCANS_MAX);
    at = findScanEnd(bytes, end);
  }
}

/** A marker, before which any number of fill bytes may stand. */
function readMarker(bytes: Buffer, start: number): { readonly code: number; readonly next: number } {
  requireWhole(bytes[start] === MARKER);
  let at = start;
  while (bytes[at] === MARKER) at += 1;
  const code = bytes[at];
  requireWhole(code !== undefined);
  return { code, next: at + 1 };
}

/** Where the marker after a scan begins. */
function findScanEnd(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(MARKER, start); at !== -1; at = bytes.indexOf(MARKER, at + 1)) {
    const code = bytes[at + 1];
    if (code === undefined) break;
    if (code !== MARKER && !isInScan(code)) return at;
  }
  throw new ImageRefused('damaged');
}
