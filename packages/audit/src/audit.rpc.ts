import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { ActorKind, AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import type pg from 'pg';
import { type EntryRow, listEntries } from './list-entries.ts';

export function auditRoute(pool: pg.Pool): RpcRoute {
  return rpcRoute(AuditService, {
    async listAuditEntries(request) {
      const { entries, hasMore } = await listEntries(pool, request);
      return { entries: entries.map(toMessage), hasMore };
    },
  });
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
