import type { IncomingHttpHeaders } from 'node:http';
import { namesEntity } from '@latchkey/kit/http/entity-tag';
import type { ByteRange } from '../object-store/object-store.ts';

export interface Validators {
  readonly etag: string;
  readonly lastModified: Date;
}

/** The three forms of RFC 9110, 5.6.7. `Date.parse` rejects months and numbers that do not exist. */
const HTTP_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:(?:, \d\d [A-Z][a-z]{2} \d{4}|\w*day, \d\d-[A-Z][a-z]{2}-\d\d) [\d:]{8} GMT| [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/;

const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** Status for preconditions of a GET or HEAD that fail, in the order of RFC 9110, 13.2.2. */
export function checkPreconditions(headers: IncomingHttpHeaders, validators: Validators): 304 | 412 | undefined {
  const { etag, lastModified } = validators;
  const modifiedAt = wholeSeconds(lastModified);
  if (headers['if-match'] !== undefined) {
    if (!namesEntity(headers['if-match'], etag, 'strong')) return 412;
  } else {
    const unmodifiedSince = parseHttpDate(headers['if-unmodified-since']);
    if (unmodifiedSince !== undefined && modifiedAt > unmodifiedSince) return 412;
  }
  if (headers['if-none-match'] !== undefined) return namesEntity(headers['if-none-match'], etag) ? 304 : undefined;
  const modifiedSince = parseHttpDate(headers['if-modified-since']);
  return modifiedSince !== undefined && modifiedAt <= modifiedSince ? 304 : undefined;
}

/**
 * The bytes that a request asks for (RFC 9110, 13.1.5 and 14.2). `unsatisfiable` for a range
 * without a byte; undefined for the whole: no range, several, another unit, a malformed one, or one
 * of another state by `If-Range`.
 */
export function parseRange(
  headers: IncomingHttpHeaders,
  validators: Validators,
  byteSize: number,
): ByteRange | 'unsatisfiable' | undefined {
  if (!isRangeWanted(headers['if-range'] as string | undefined, validators)) return undefined;
  const [, first = '', last = ''] = SINGLE_RANGE.exec(headers.range ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const length = Math.min(Number(last), byteSize);
    return length > 0 ? { start: byteSize - length, end: byteSize - 1 } : 'unsatisfiable';
  }
  const start = Number(first);
  const end = last === '' ? byteSize - 1 : Number(last);
  if (end < start && last !== '') return undefined;
  return start < byteSize ? { start, end: Math.min(end, byteSize - 1) } : 'unsatisfiable';
}

/** A date is a strong validator here: contents of a file differ in it by a second at least. */
function isRangeWanted(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  return ifRange === undefined || ifRange === etag || parseHttpDate(ifRange) === wholeSeconds(lastModified);
}

function parseHttpDate(text = ''): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}

const wholeSeconds = (date: Date) => Math.floor(date.getTime() / 1000) * 1000;
