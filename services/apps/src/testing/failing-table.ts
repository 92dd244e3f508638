import { randomUUID } from 'node:crypto';
import type pg from 'pg';

export type Operation = 'insert' | 'update' | 'delete';

/**
 * Makes the database refuse an operation on one application's rows while something runs.
 *
 * @param when `commit` lets the statement pass and fails the commit
 */
export async function whileFailing<T>(
  db: pg.Pool,
  failure: {
    readonly table: 'application' | 'application_event' | 'audit_entry';
    readonly operation: Operation;
    readonly applicationId: string;
    readonly when?: 'statement' | 'commit';
  },
  run: () => Promise<T>,
): Promise<T> {
  const name = `fail_${randomUUID().replaceAll('-', '')}`;
  const { table, operation, applicationId } = failure;
  const row = operation === 'delete' ? 'old' : 'new';
  const column = table === 'application' ? 'id' : 'application_id';
  const [kind, mode] = failure.when === 'commit' ? ['constraint trigger', 'deferrable initially deferred'] : ['trigger', ''];
  await db.query(
    `create function ${name}() returns trigger language plpgsql as $$ begin raise exception 'refused by the test'; end $$`,
  );
  await db.query(
    `create ${kind} ${name} after ${operation} on ${table} ${mode}
      for each row when (${row}.${column} = '${applicationId}') execute function ${name}()`,
  );
  try {
    return await run();
  } finally {
    await db.query(`drop function ${name} cascade`);
  }
}
