import { ImageRefused } from './image-fault.ts';

/** A PDF may begin anywhere in here, by what readers take. */
const PDF_HEAD_BYTES = 1_024;
const PDF = '%PDF-';

/** The record that ends a ZIP: 22 bytes and a comment. In it are the size of the directory before it and the length of the comment. */
const ZIP_END = Buffer.from('504b0506', 'hex');
const ZIP_END_BYTES = 22;
const ZIP_DIRECTORY_BYTES_AT = 12;
const ZIP_COMMENT_BYTES_MAX = 65_535;
const ZIP_DIRECTORY = Buffer.from('504b0102', 'hex');

/** Where zeros end, of which some programs leave a few behind an image. */
export function paddingEnd(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at] === 0) at += 1;
  return at;
}

/** Throws `damaged` where there is anything but zeros behind an image: it would be a file of another kind at the same time. */
export function requirePadding(bytes: Buffer, start: number): void {
  if (paddingEnd(bytes, start) < bytes.length) throw new ImageRefused('damaged');
}

/**
 * Refuses an image that hides another file in what readers of images pass over. What is stored is made anew and could hide nothing, but who sends
 * such a thing does not want a picture.
 *
 * @throws ImageRefused
 */
export function refusePolyglot(bytes: Buffer): void {
  if (bytes.subarray(0, PDF_HEAD_BYTES).includes(PDF) || endsAsZip(bytes)) throw new ImageRefused('hides_file');
}

/** Looks for the end from behind, as readers of ZIP do, and whether a directory is before it: four bytes alone may be there by chance. */
function endsAsZip(bytes: Buffer): boolean {
  const first = Math.max(0, bytes.length - ZIP_END_BYTES - ZIP_COMMENT_BYTES_MAX);
  for (let at = bytes.lastIndexOf(ZIP_END); at >= first; at = at === 0 ? -1 : bytes.lastIndexOf(ZIP_END, at - 1)) {
    if (at + ZIP_END_BYTES > bytes.length) continue;
    const directoryAt = at - bytes.readUInt32LE(at + ZIP_DIRECTORY_BYTES_AT);
    if (directoryAt >= 0 && bytes.indexOf(ZIP_DIRECTORY, directoryAt) === directoryAt) return true;
  }
  return false;
}
