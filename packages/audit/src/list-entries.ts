import { defineErrors } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import type pg from 'pg';
import { type EntryRow, type EntrySelection, type PageStart, selectEntries } from './audit.store.ts';

export type { EntryRow } from './audit.store.ts';

const errors = defineErrors({
  audit_page_invalid: { kind: 'malformed', message: 'The page of the audit log is not valid' },
});

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
/** Within the range of PostgreSQL's timestamps. */
const TIME_MS_MAX = 99_999_999_999_999;

/** A page as a caller requests it. */
export interface ListRequest {
  readonly accountId: string;
  readonly filter: EntrySelection['filter'];
  /** The last entry of the page before; undefined for the newest page. */
  readonly before: { readonly atMs: number; readonly id: string } | undefined;
  /** 0 means 50. */
  readonly limit: number;
}

/**
 * Lists a page of entries, newest first. An invalid account, application or action has no entries.
 *
 * @throws `audit_page_invalid`
 */
export async function listEntries(pool: pg.Pool, request: ListRequest): Promise<{ entries: EntryRow[]; hasMore: boolean }> {
  if (request.limit < 0 || request.limit > LIMIT_MAX) throw errors.audit_page_invalid();
  const limit = request.limit || LIMIT_DEFAULT;
  const before = request.before && parsePageStart(request.before);
  const selection = parseSelection(request);
  if (!selection) return { entries: [], hasMore: false };
  const rows = await selectEntries(pool, selection, { before, limit: limit + 1 });
  return { entries: rows.slice(0, limit), hasMore: rows.length > limit };
}

function parsePageStart({ atMs, id: text }: NonNullable<ListRequest['before']>): PageStart {
  const id = parseId(text);
  if (!id || !(Math.abs(atMs) <= TIME_MS_MAX)) throw errors.audit_page_invalid();
  return { at: new Date(atMs), id };
}

function parseSelection({ accountId: accountText, filter }: ListRequest): EntrySelection | undefined {
  const accountId = parseId(accountText);
  if (!accountId || !filter) return accountId ? { accountId, filter } : undefined;
  const value = filter.by === 'application_id' ? parseId(filter.value) : /^[\w.]{1,64}$/.exec(filter.value)?.[0];
  return value === undefined ? undefined : { accountId, filter: { by: filter.by, value } };
}
