import { parseId } from '@latchkey/kit/validation/id';
import { errors } from '../proto-errors.ts';

const PAGE_SIZE_MAX = 1_000;

/** A page begins after this row. */
export interface PageStart {
  readonly createdAt: Date;
  readonly id: string;
}

/**
 * Parses a page size (0 means the most, 1,000) and a page token (empty means the first page).
 *
 * @throws `page_token_invalid`
 */
export function parsePage(pageSize: number, token: string) {
  const size = parsePageSize(pageSize);
  return {
    size,
    after: token === '' ? undefined : parseToken(token),
    /** Cuts rows, of which one more than `size` was read; returns the next page's token. */
    cut<Row>(rows: readonly Row[], startOf: (row: Row) => PageStart): { shown: readonly Row[]; nextPageToken: string } {
      const shown = rows.slice(0, size);
      const last = shown.at(-1);
      return { shown, nextPageToken: last && rows.length > size ? toToken(startOf(last)) : '' };
    },
  };
}

/** Parses a page size; 0 means the most, 1,000. Throws `page_token_invalid`. */
export function parsePageSize(size: number): number {
  if (!Number.isInteger(size) || size < 0 || size > PAGE_SIZE_MAX) throw errors.page_token_invalid();
  return size || PAGE_SIZE_MAX;
}

function toToken(last: PageStart): string {
  return Buffer.from(`${last.createdAt.getTime()} ${last.id}`).toString('base64url');
}

function parseToken(token: string): PageStart {
  const [millis = '', text = ''] = Buffer.from(token, 'base64url').toString('latin1').split(' ');
  const id = parseId(text);
  if (!/^\d{1,14}$/.test(millis) || !id) throw errors.page_token_invalid();
  const start = { createdAt: new Date(Number(millis)), id };
  // Base64 is decoded leniently; only what toToken wrote is a token.
  if (toToken(start) !== token) throw errors.page_token_invalid();
  return start;
}
