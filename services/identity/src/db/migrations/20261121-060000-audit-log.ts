import { createAuditTable } from '@latchkey/audit/audit.store';
import { createIdempotencyTable } from '@latchkey/audit/idempotency.store';
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
  await createIdempotencyTable(db);
}
