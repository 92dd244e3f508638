import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { AuditService, type ListAuditEntriesRequestSchema } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import type { Kysely } from 'kysely';
import { auditRoute } from '../audit/audit.rpc.ts';
import { createAuditTable } from '../audit/audit-entry.store.ts';
import { createDatabase, type Database } from '../database/database.ts';
import { migrate } from '../database/migrate.ts';
import { createLogger } from '../logger.ts';
import { createDirectTransport } from '../rpc/client/direct-transport.ts';

/** The audit log of a service that does nothing else. */
export interface TestAuditLog extends Database<unknown> {
  readonly url: string;
  /** Ids of the entries that the RPC answers, and whether there are more. */
  list(
    request: MessageInitShape<typeof ListAuditEntriesRequestSchema>,
  ): Promise<{ readonly ids: string[]; readonly hasMore: boolean }>;
  readonly client: ReturnType<typeof createAuditClient>;
  stop(): Promise<void>;
}

const logger = createLogger('shop', 'silent');

const createAuditClient = (pool: Database<unknown>['pool']) =>
  createClient(AuditService, createDirectTransport([auditRoute(pool)], logger));

export async function startTestAuditLog(): Promise<TestAuditLog> {
  const database = await createEmptyTestDatabase();
  await migrate(database.url, 'shop', { '1': { up: (db: Kysely<unknown>) => createAuditTable(db) } });
  const own = createDatabase<unknown>({ url: database.url, schema: 'shop', logger });
  const client = createAuditClient(own.pool);
  return {
    ...own,
    url: database.url,
    client,
    async list(request) {
      const { entries, hasMore } = await client.listAuditEntries(request);
      return { ids: entries.map(({ id }) => id), hasMore };
    },
    async stop() {
      await own.close();
      await database.drop();
    },
  };
}

/** What is inserted beside what a test says of it. */
export interface SomeEntry {
  readonly id?: string;
  readonly accountId: string;
  readonly at: Date;
  readonly action?: string;
  readonly applicationId?: string;
}

/** Inserts an entry at a time, and answers its id. */
export async function insertAt({ pool }: Pick<TestAuditLog, 'pool'>, entry: SomeEntry): Promise<string> {
  const { id = randomUUID(), accountId, at, action = 'thing.done', applicationId = null } = entry;
  await pool.query(
    `insert into audit_entry (id, account_id, at, action, actor, subject, subject_id, application_id, changes)
      values ($1, $2, $3, $4, 'service', 'account', $2, $5, '{}')`,
    [id, accountId, at, action, applicationId],
  );
  return id;
}
