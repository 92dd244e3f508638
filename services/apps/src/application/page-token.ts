import { RPC_PAGE_SIZE_MAX } from '@latchkey/contract/page-size';
import { parseId } from '@latchkey/kit/validation/id';
import { errors } from '../proto-errors.ts';

/** A page begins after this row. */
interface PageStart {
  readonly createdAt: Date;
  readonly id: string;
}

export type Page = ReturnType<typeof parsePage>;

/**
 * Parses a page size (0 means the most, 1,000) and a page token (empty means the first page).
 *
 * @throws `page_token_invalid`
 */
export function parsePage({ pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string }) {
  const size = parsePageSize(pageSize);
  return {
    after: pageToken === '' ? undefined : parseToken(pageToken),
    /** Rows to read: one more shows that another page follows. */
    limit: size + 1,
    /** The rows of the page, and the token of the next one. */
    cut<Row>(rows: readonly Row[], startOf: (row: Row) => PageStart) {
      const shown = rows.slice(0, size);
      const last = shown.at(-1);
      return { shown, nextPageToken: last && rows.length > size ? toToken(startOf(last)) : '' };
    },
  };
}

/** Parses a page size; 0 means the most, 1,000. Throws `page_token_invalid`. */
export function parsePageSize(size: number): number {
  if (!Number.isInteger(size) || size < 0 || size > RPC_PAGE_SIZE_MAX) throw errors.page_token_invalid();
  return size || RPC_PAGE_SIZE_MAX;
}

const toToken = ({ createdAt, id }: PageStart) => Buffer.from(`${createdAt.getTime()} ${id}`).toString('base64url');

function parseToken(token: string): PageStart {
  const [millis = '', id = ''] = Buffer.from(token, 'base64url').toString('latin1').split(' ');
  const start = { createdAt: new Date(Number(millis)), id };
  // Base64 is decoded leniently; only what toToken wrote is a token.
  if (!/^\d{1,14}$/.test(millis) || parseId(id) !== id || toToken(start) !== token) throw errors.page_token_invalid();
  return start;
}
