import type { IncomingMessage } from 'node:http';
import { errors } from '../errors.ts';

/**
 * Refuses a browser that a page of another site sent here, other than one of `origins`. What is no browser, or an old one, says nothing of where it comes
 * from, and is let through.
 *
 * @throws `csrf_invalid`
 */
export function checkNotSentHere({ headers }: IncomingMessage, origins: ReadonlySet<string>): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  // A page can keep its browser from saying where it comes from, and can not have it say something else.
  const { referer = '' } = headers;
  if (!URL.canParse(referer) || !origins.has(new URL(referer).origin)) throw errors.csrf_invalid();
}

/**
 * Refuses what a page of another site has its visitor's browser load within itself, as a picture or in a frame: whoever comes back from somewhere comes by
 * themselves. What says nothing of that is let through.
 *
 * @throws `csrf_invalid`
 */
export function checkVisited({ headers }: IncomingMessage): void {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document' } = headers;
  if (site === 'cross-site' && destination !== 'document') throw errors.csrf_invalid();
}
