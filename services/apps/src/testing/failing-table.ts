import { randomUUID } from 'node:crypto';
import type pg from 'pg';

export interface Failure {
  readonly table: 'application' | 'application_event' | 'audit_entry';
  readonly operation: 'insert' | 'update' | 'delete';
  readonly applicationId: string;
  /** `commit` lets the statement pass and fails the commit. */
  readonly when?: 'statement' | 'commit';
}

/** Makes the database reject an operation on one application's rows while something runs. */
export async function whileFailing<T>(db: pg.Pool, failure: Failure, run: () => Promise<T>): Promise<T> {
  const name = `fail_${randomUUID().replaceAll('-', '')}`;
  const { table, operation, applicationId, when } = failure;
  const row = operation === 'delete' ? 'old' : 'new';
  const column = table === 'application' ? 'id' : 'application_id';
  const [kind, mode] = when === 'commit' ? ['constraint trigger', 'deferrable initially deferred'] : ['trigger', ''];
  await db.query(`
    create function ${name}() returns trigger language plpgsql as $$ begin raise exception 'rejected by the test'; end $$;
    create ${kind} ${name} after ${operation} on ${table} ${mode}
      for each row when (${row}.${column} = '${applicationId}') execute function ${name}()`);
  try {
    return await run();
  } finally {
    await db.query(`drop function ${name} cascade`);
  }
}
