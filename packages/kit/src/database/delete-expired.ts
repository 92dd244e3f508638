import { type Kysely, type RawBuilder, sql } from 'kysely';
import { deleteInBatches } from '../sweeper/sweeper.ts';

/** Rows of a table that are deleted at an age. */
interface ExpiringRows {
  readonly table: string;
  /** Column of the time or day that counts; an index begins with it. */
  readonly since: string;
  /** Further condition, which the index has too. */
  readonly where?: RawBuilder<boolean>;
}

const BATCH = 500;

/**
 * Deletes the rows up to a time or a day, the oldest first, in batches. Rows that others have
 * locked stay for the next sweep.
 */
export async function deleteExpired<DB>(
  db: Kysely<DB>,
  rows: ExpiringRows,
  until: Date | string | RawBuilder<Date>,
  signal: AbortSignal,
) {
  const { table, since, where = sql<boolean>`true` } = rows;
  const expired = sql`select ctid from ${sql.table(table)} where ${sql.ref(since)} <= ${until} and ${where}
    order by ${sql.ref(since)} limit ${BATCH} for update skip locked`;
  await deleteInBatches(BATCH, signal, async () => {
    const { numAffectedRows = 0n } = await sql`
      delete from ${sql.table(table)} where ctid = any(array(${expired}))`.execute(db);
    return Number(numAffectedRows);
  });
}
