import type { IncomingHttpHeaders } from 'node:http';
import { parseHttpDate } from './http-date.ts';

/** What tells one state of a resource from another (RFC 9110, 8.8). */
export interface Validators {
  /** A strong entity tag, with its quotation marks. */
  readonly etag: string;
  readonly lastModified: Date;
}

const ENTITY_TAG = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * Whether the preconditions of a GET or HEAD request hold, in the order of RFC 9110, 13.2.2.
 *
 * @returns the status to answer with where they do not
 */
export function checkPreconditions(headers: IncomingHttpHeaders, validators: Validators): 304 | 412 | undefined {
  const { etag, lastModified } = validators;
  const modifiedAt = wholeSeconds(lastModified);
  if (headers['if-match'] !== undefined) {
    if (!matches(headers['if-match'], etag, 'strong')) return 412;
  } else {
    const unmodifiedSince = parseHttpDate(headers['if-unmodified-since'] ?? '');
    if (unmodifiedSince !== undefined && modifiedAt > unmodifiedSince) return 412;
  }
  if (headers['if-none-match'] !== undefined) return matches(headers['if-none-match'], etag, 'weak') ? 304 : undefined;
  const modifiedSince = parseHttpDate(headers['if-modified-since'] ?? '');
  return modifiedSince !== undefined && modifiedAt <= modifiedSince ? 304 : undefined;
}

/**
 * Whether a `Range` header counts: `If-Range` asks for the whole where it names another state (RFC 9110, 13.1.5). The date is a strong
 * validator here, since the bytes of a file never change.
 */
export function isRangeWanted(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  if (ifRange === undefined) return true;
  return ifRange === etag || parseHttpDate(ifRange) === wholeSeconds(lastModified);
}

/** Whether one of the tags in a list is the given one; a weak tag only where a weak comparison will do (RFC 9110, 8.8.3.2). */
function matches(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  return [...list.matchAll(ENTITY_TAG)].some(([, weak, tag]) => tag === etag && (comparison === 'weak' || weak === undefined));
}

function wholeSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000) * 1000;
}
