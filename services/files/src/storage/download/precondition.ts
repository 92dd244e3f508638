import type { IncomingHttpHeaders } from 'node:http';

/** What tells one state of a resource from another (RFC 9110, 8.8). */
export interface Validators {
  /** A strong entity tag, with its quotation marks. */
  readonly etag: string;
  readonly lastModified: Date;
}

const ENTITY_TAG = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
/** The form of HTTP dates, and two obsolete ones that must be accepted (RFC 9110, 5.6.7). */
const HTTP_DATES = [
  `${DAY}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT`,
  `${LONG_DAY}, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT`,
  `${DAY} ${MONTH} [ \\d]\\d ${TIME} \\d{4}`,
];
const HTTP_DATE = new RegExp(`^(?:${HTTP_DATES.join('|')})$`);

/**
 * Whether the preconditions of a GET or HEAD request hold, in the order of RFC 9110, 13.2.2.
 *
 * @returns the status to respond with where they do not
 */
export function checkPreconditions(headers: IncomingHttpHeaders, validators: Validators): 304 | 412 | undefined {
  const { etag, lastModified } = validators;
  const modifiedAt = wholeSeconds(lastModified);
  if (headers['if-match'] !== undefined) {
    if (!matches(headers['if-match'], etag, 'strong')) return 412;
  } else {
    const unmodifiedSince = parseHttpDate(headers['if-unmodified-since']);
    if (unmodifiedSince !== undefined && modifiedAt > unmodifiedSince) return 412;
  }
  if (headers['if-none-match'] !== undefined) return matches(headers['if-none-match'], etag, 'weak') ? 304 : undefined;
  const modifiedSince = parseHttpDate(headers['if-modified-since']);
  return modifiedSince !== undefined && modifiedAt <= modifiedSince ? 304 : undefined;
}

/**
 * Whether a `Range` header counts: `If-Range` asks for the whole where it names another state (RFC
 * 9110, 13.1.5). The date is a strong validator here, since the bytes of a file never change.
 */
export function isRangeWanted(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  if (ifRange === undefined) return true;
  return ifRange === etag || parseHttpDate(ifRange) === wholeSeconds(lastModified);
}

/** Whether a list has the tag; a weak tag counts only in a weak comparison (RFC 9110, 8.8.3.2). */
function matches(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  return [...list.matchAll(ENTITY_TAG)].some(([, weak, tag]) => tag === etag && (comparison === 'weak' || weak === undefined));
}

/** The time of an HTTP date in milliseconds since 1970, or undefined for other text. */
function parseHttpDate(text = ''): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}

const wholeSeconds = (date: Date) => Math.floor(date.getTime() / 1000) * 1000;
