import { timestampMs } from '@bufbuild/protobuf/wkt';
import { AUDIT_PAGE_SIZE } from '@latchkey/contract/page-size';
import { defineErrors } from '@latchkey/kit/errors/errors';
import { parseId, toId } from '@latchkey/kit/validation/id';
import type { ListAuditEntriesRequest } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import type pg from 'pg';
import { type ListedEntry, selectEntries } from './audit.store.ts';

export type { ListedEntry } from './audit.store.ts';

const errors = defineErrors({
  audit_page_invalid: { kind: 'malformed', message: 'The page of the audit log is not valid' },
});

/** Within the range of PostgreSQL's timestamps. */
const TIME_MS_MAX = 99_999_999_999_999;

const ACTION = /^[\w.]{1,64}$/;

/**
 * Lists a page of entries, newest first; none for an invalid account, application or action.
 *
 * @throws `audit_page_invalid`
 */
export async function listEntries(pool: pg.Pool, request: ListAuditEntriesRequest) {
  if (request.limit < 0 || request.limit > AUDIT_PAGE_SIZE.max) throw errors.audit_page_invalid();
  const limit = request.limit || AUDIT_PAGE_SIZE.default;
  const before = request.before && parsePageStart(request.before);
  const { case: filter, value: text = '' } = request.filter;
  // No action is empty.
  const value = filter === 'applicationId' ? toId(text) : (ACTION.exec(text)?.[0] ?? '');
  const rows = await selectEntries(pool, { accountId: toId(request.accountId), filter, value, before, limit: limit + 1 });
  return { entries: rows.slice(0, limit), hasMore: rows.length > limit };
}

function parsePageStart({ at, id: text }: NonNullable<ListAuditEntriesRequest['before']>): Pick<ListedEntry, 'at' | 'id'> {
  const id = parseId(text);
  const atMs = at ? timestampMs(at) : Number.NaN;
  if (!id || !(Math.abs(atMs) <= TIME_MS_MAX)) throw errors.audit_page_invalid();
  return { at: new Date(atMs), id };
}
