import { createAuditTable } from '@latchkey/audit/audit.store';
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
}
