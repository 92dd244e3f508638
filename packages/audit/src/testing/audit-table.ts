import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createDatabase, type Database } from '@latchkey/kit/database/database';
import { migrate } from '@latchkey/kit/database/migrate';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { AuditService, type ListAuditEntriesRequestSchema } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import type { Kysely } from 'kysely';
import { afterAll } from 'vitest';
import { auditRoute } from '../audit.rpc.ts';
import { createAuditTable } from '../audit.store.ts';
import { createIdempotencyTable } from '../idempotency.store.ts';

type TestAuditLog = Awaited<ReturnType<typeof openTestAuditLog>>;

const logger = createLogger('shop', 'silent');

async function createTables(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
  await createIdempotencyTable(db);
}

/** An audit log until the end of the test file, for its top level. */
export async function openTestAuditLog() {
  const database = await createEmptyTestDatabase();
  await migrate(database.url, 'shop', { '1': { up: createTables } });
  const own: Database<unknown> = createDatabase({ url: database.url, schema: 'shop', logger });
  afterAll(async () => {
    await own.close();
    await database.drop();
  });
  const client = createClient(AuditService, createDirectTransport([auditRoute(own.pool)], logger));
  return {
    ...own,
    url: database.url,
    client,
    /** Ids of the entries that the RPC returns. */
    async list(request: MessageInitShape<typeof ListAuditEntriesRequestSchema>): Promise<string[]> {
      return (await client.listAuditEntries(request)).entries.map(({ id }) => id);
    },
  };
}

interface SomeEntries {
  readonly accountId: string;
  /** Time of the first; each is a millisecond after the one before. */
  readonly at?: Date;
  readonly action?: string;
  readonly applicationId?: string;
  readonly credentialId?: string;
  readonly count?: number;
}

/** Inserts entries, numbered in their changes, and returns their ids. */
export async function insertEntriesAt({ pool }: Pick<TestAuditLog, 'pool'>, entries: SomeEntries): Promise<string[]> {
  const { accountId, at = new Date(), action = 'account.created', applicationId, credentialId, count = 1 } = entries;
  const ids = Array.from({ length: count }, () => randomUUID());
  await pool.query(
    `insert into audit_entry (id, account_id, at, action, actor, credential_id, subject, subject_id, application_id, changes)
      select id, $2, $3::timestamptz + (i - 1) * interval '1 ms', $4, 'service', $5, 'account', $2, $6, jsonb_build_object('n', i)
      from unnest($1::uuid[]) with ordinality as t (id, i)`,
    [ids, accountId, at, action, credentialId ?? null, applicationId ?? null],
  );
  return ids;
}
