import type { Api } from './api.ts';

export const AUDIT_LOG = '/api/v1/panel/audit-log';

/** An entry of the audit log (docs/audit-log.md). */
export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly action: string;
  readonly actor: { readonly kind: string; readonly credentialId: string | null; readonly address: string | null };
  readonly requestId: string | null;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly applicationId: string | null;
  readonly changes: Readonly<Record<string, unknown>>;
}

/** All entries of an account, newest first, by pages of some size. */
export async function readAuditLog(
  session: Api,
  limit = 100,
  filter: Readonly<Record<string, string>> = {},
): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = { limit: String(limit), ...filter, ...(cursor !== '' && { cursor }) };
    const { data, text } = await session.get(AUDIT_LOG, query);
    if (data === undefined) throw new Error(`The audit log was not read: ${text}`);
    entries.push(...data.entries);
    cursor = data.nextCursor;
  }
  return entries;
}
