import type pg from 'pg';
import { defineErrors } from '../errors.ts';
import { parseId } from '../id.ts';
import { type EntryPlace, type EntryRow, type EntrySelection, selectEntries } from './audit-entry.store.ts';

export type { EntryRow } from './audit-entry.store.ts';

const errors = defineErrors({
  audit_page_invalid: { kind: 'malformed', message: 'The page of the audit log is not valid' },
});

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;

/** What PostgreSQL has a time for, in milliseconds, and to spare. */
const TIME_MS_MAX = 99_999_999_999_999;

/** Which entries to list, as a caller sent it. */
export interface ListRequest {
  readonly accountId: string;
  readonly filter: EntrySelection['filter'];
  /** Only those before this place; undefined for the newest. */
  readonly before: { readonly atMs: number; readonly id: string } | undefined;
  /** 0 means 50. */
  readonly limit: number;
}

/**
 * A page of entries, newest first, and whether there are older ones. What names no account, application or action has none.
 *
 * @throws `audit_page_invalid`
 */
export async function listEntries(pool: pg.Pool, request: ListRequest): Promise<{ entries: EntryRow[]; hasMore: boolean }> {
  const limit = parseLimit(request.limit);
  const before = request.before && parsePlace(request.before);
  const selection = parseSelection(request);
  if (!selection) return { entries: [], hasMore: false };
  const rows = await selectEntries(pool, selection, { before, limit: limit + 1 });
  return { entries: rows.slice(0, limit), hasMore: rows.length > limit };
}

function parseLimit(limit: number): number {
  if (limit < 0 || limit > LIMIT_MAX) throw errors.audit_page_invalid();
  return limit || LIMIT_DEFAULT;
}

function parsePlace({ atMs, id: text }: NonNullable<ListRequest['before']>): EntryPlace {
  const id = parseId(text);
  if (!id || !(Math.abs(atMs) <= TIME_MS_MAX)) throw errors.audit_page_invalid();
  return { at: new Date(atMs), id };
}

/** Undefined where nothing can be found. */
function parseSelection({ accountId: accountText, filter }: ListRequest): EntrySelection | undefined {
  const accountId = parseId(accountText);
  if (!accountId) return undefined;
  if (!filter) return { accountId, filter };
  // No action has a character that PostgreSQL could refuse.
  const value = filter.by === 'application_id' ? parseId(filter.value) : /^[\w.]{1,64}$/.exec(filter.value)?.[0];
  return value === undefined ? undefined : { accountId, filter: { by: filter.by, value } };
}
