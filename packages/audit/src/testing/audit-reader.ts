import { createClient } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { REQUEST_ID_HEADER, type RpcRoute } from '@latchkey/kit/rpc/route';
import { ActorKind, AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { ACTOR_HEADER } from '../actor.ts';

/** An entry in a form that tests compare. */
export interface ShownEntry {
  readonly action: string;
  readonly actor: string;
  readonly credentialId: string | undefined;
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  readonly subject: string;
  readonly applicationId: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into changes of every kind.
  readonly changes: any;
}

/** A session that calls are made for, and the id of their request. */
export const CALLER = {
  credentialId: '01900000-0000-7000-8000-00000000cafe',
  address: '203.0.113.7',
  requestId: 'request-of-caller',
};

/** Options of a call that is made on behalf of {@link CALLER}. */
export const AS_CALLER = {
  headers: {
    [ACTOR_HEADER]: `session ${CALLER.credentialId} ${CALLER.address}`,
    [REQUEST_ID_HEADER]: CALLER.requestId,
  },
};

/** Reads what a service has written to the audit log of an account, the oldest first. */
export function auditReader(routes: readonly RpcRoute[]): (accountId: string) => Promise<ShownEntry[]> {
  const client = createClient(AuditService, createDirectTransport(routes, createLogger('test', 'silent')));
  return async (accountId) => {
    const { entries } = await client.listAuditEntries({ accountId, limit: 100 });
    return entries.toReversed().map((entry) => ({
      action: entry.action,
      actor: ActorKind[entry.actorKind].toLowerCase(),
      credentialId: entry.credentialId,
      address: entry.address,
      requestId: entry.requestId,
      subject: `${entry.subjectKind} ${entry.subjectId}`,
      applicationId: entry.applicationId,
      changes: JSON.parse(entry.changesJson),
    }));
  };
}
