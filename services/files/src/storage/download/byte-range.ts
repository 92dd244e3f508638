import type { ByteRange } from '../object-store/object-store.ts';

/** One range of bytes, of which either end may be left out (RFC 9110, 14.1.2). */
const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * The bytes that a `Range` header asks for (RFC 9110, 14.2).
 *
 * @param header undefined where there is none
 * @param byteSize size of the whole, at least one
 * @returns undefined for the whole: no header, several ranges, another unit, a malformed one;
 *   `unsatisfiable` for a range without a byte
 */
export function parseRange(header: string | undefined, byteSize: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = SINGLE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    // The last bytes, or all where there are not so many.
    const length = Math.min(Number(last), byteSize);
    return length > 0 ? { start: byteSize - length, end: byteSize - 1 } : 'unsatisfiable';
  }
  const start = Number(first);
  const end = last === '' ? byteSize - 1 : Number(last);
  if (end < start && last !== '') return undefined;
  return start < byteSize ? { start, end: Math.min(end, byteSize - 1) } : 'unsatisfiable';
}
