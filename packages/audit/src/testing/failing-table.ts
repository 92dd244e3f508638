import { randomUUID } from 'node:crypto';
import type pg from 'pg';

export interface Failure {
  readonly table: string;
  /** Every change unless one is given. */
  readonly operation?: 'insert' | 'update' | 'delete';
  /** Rows of any application unless one is given, whose id a column has. */
  readonly applicationId?: string;
  /** `commit` lets the statement pass and fails the commit. */
  readonly when?: 'statement' | 'commit';
}

/** Makes the database reject changes of a table's rows while something runs. */
export async function whileFailing<T>(db: pg.Pool, failure: Failure, run: () => Promise<T>): Promise<T> {
  const name = `fail_${randomUUID().replaceAll('-', '')}`;
  const { table, operation = 'insert or update or delete', applicationId, when } = failure;
  const row = operation === 'delete' ? 'old' : 'new';
  const column = table === 'application' ? 'id' : 'application_id';
  const rows = applicationId === undefined ? '' : `when (${row}.${column} = '${applicationId}')`;
  const [kind, mode] = when === 'commit' ? ['constraint trigger', 'deferrable initially deferred'] : ['trigger', ''];
  await db.query(`
    create function ${name}() returns trigger language plpgsql as $$ begin raise exception 'rejected by the test'; end $$;
    create ${kind} ${name} after ${operation} on ${table} ${mode}
      for each row ${rows} execute function ${name}()`);
  try {
    return await run();
  } finally {
    await db.query(`drop function ${name} cascade`);
  }
}
