import { createAuditTable } from '@latchkey/kit/audit/audit-entry.store';
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
}
