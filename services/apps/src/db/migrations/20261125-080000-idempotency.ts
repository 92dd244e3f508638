import { createIdempotencyTable } from '@latchkey/audit/idempotency.store';
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createIdempotencyTable(db);
}
