import { fromRow } from '@latchkey/kit/rpc/from-row';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { ActorKind, AuditEntrySchema, AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import type pg from 'pg';
import { type ListedEntry, listEntries } from './list-entries.ts';

export function auditRoute(pool: pg.Pool): RpcRoute {
  return rpcRoute(AuditService, {
    async listAuditEntries(request) {
      const { entries, hasMore } = await listEntries(pool, request);
      return { entries: entries.map(toMessage), hasMore };
    },
  });
}

function toMessage(row: ListedEntry) {
  const actorKind = ActorKind[row.actor.toUpperCase() as Uppercase<ListedEntry['actor']>];
  return { ...fromRow(AuditEntrySchema, row), actorKind };
}
