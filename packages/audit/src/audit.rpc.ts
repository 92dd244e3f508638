import { timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { defineErrors } from '@latchkey/kit/errors/errors';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { parseId } from '@latchkey/kit/validation/id';
import { ActorKind, AuditService, type ListAuditEntriesRequest } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import type pg from 'pg';
import { type EntryRow, type PageStart, selectEntries } from './audit.store.ts';

const errors = defineErrors({
  audit_page_invalid: { kind: 'malformed', message: 'The page of the audit log is not valid' },
});

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 50;
/** Within the range of PostgreSQL's timestamps. */
const TIME_MS_MAX = 99_999_999_999_999;

/** Serves the entries of one service: none for an invalid account, application or action. */
export function auditRoute(pool: pg.Pool): RpcRoute {
  return rpcRoute(AuditService, {
    async listAuditEntries(request) {
      if (request.limit < 0 || request.limit > LIMIT_MAX) throw errors.audit_page_invalid();
      const limit = request.limit || LIMIT_DEFAULT;
      const before = request.before && parsePageStart(request.before);
      const accountId = parseId(request.accountId);
      const value = parseFilter(request.filter);
      if (!accountId || (request.filter.case && value === undefined)) return { entries: [], hasMore: false };
      const selection = { accountId, filter: request.filter.case, value, before, limit: limit + 1 };
      const rows = await selectEntries(pool, selection);
      return { entries: rows.slice(0, limit).map(toMessage), hasMore: rows.length > limit };
    },
  });
}

function parsePageStart({ at, id: text }: NonNullable<ListAuditEntriesRequest['before']>): PageStart {
  const id = parseId(text);
  const atMs = at ? timestampMs(at) : Number.NaN;
  if (!id || !(Math.abs(atMs) <= TIME_MS_MAX)) throw errors.audit_page_invalid();
  return { at: new Date(atMs), id };
}

function parseFilter(filter: ListAuditEntriesRequest['filter']): string | undefined {
  if (filter.case === 'applicationId') return parseId(filter.value);
  return /^[\w.]{1,64}$/.exec(filter.value ?? '')?.[0];
}

function toMessage(row: EntryRow) {
  return {
    id: row.id,
    at: timestampFromDate(row.at),
    action: row.action,
    actorKind: ActorKind[row.actor.toUpperCase() as Uppercase<EntryRow['actor']>],
    subjectKind: row.subject,
    subjectId: row.subject_id,
    changesJson: row.changes,
    ...(row.credential_id !== null && { credentialId: row.credential_id }),
    ...(row.address !== null && { address: row.address }),
    ...(row.request_id !== null && { requestId: row.request_id }),
    ...(row.application_id !== null && { applicationId: row.application_id }),
  };
}
