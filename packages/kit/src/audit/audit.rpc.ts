import { timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  ActorKind as ActorKindMessage,
  AuditService,
  type ListAuditEntriesRequest,
} from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import type pg from 'pg';
import { type RpcRoute, rpcRoute } from '../rpc/route.ts';
import type { ActorKind } from './actor.ts';
import { type EntryRow, type ListRequest, listEntries } from './list-entries.ts';

const KINDS: Readonly<Record<ActorKind, ActorKindMessage>> = {
  api_key: ActorKindMessage.API_KEY,
  session: ActorKindMessage.SESSION,
  operator: ActorKindMessage.OPERATOR,
  service: ActorKindMessage.SERVICE,
  anonymous: ActorKindMessage.ANONYMOUS,
};

/** Serves the entries of one service. */
export function auditRoute(pool: pg.Pool): RpcRoute {
  return rpcRoute(AuditService, {
    async listAuditEntries(request) {
      const { entries, hasMore } = await listEntries(pool, toRequest(request));
      return { entries: entries.map(toMessage), hasMore };
    },
  });
}

const COLUMNS = { applicationId: 'application_id', action: 'action' } as const;

function toRequest({ accountId, before, limit, filter }: ListAuditEntriesRequest): ListRequest {
  return {
    accountId,
    limit,
    before: before && { atMs: before.at ? timestampMs(before.at) : Number.NaN, id: before.id },
    filter: filter.case && { by: COLUMNS[filter.case], value: filter.value },
  };
}

function toMessage(row: EntryRow) {
  return {
    id: row.id,
    at: timestampFromDate(row.at),
    action: row.action,
    actorKind: KINDS[row.actor],
    subjectKind: row.subject,
    subjectId: row.subject_id,
    changesJson: row.changes,
    ...(row.credential_id !== null && { credentialId: row.credential_id }),
    ...(row.address !== null && { address: row.address }),
    ...(row.request_id !== null && { requestId: row.request_id }),
    ...(row.application_id !== null && { applicationId: row.application_id }),
  };
}
