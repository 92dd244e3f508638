import { sql } from 'kysely';

/** Columns and values of an `insert`; each property is a column, the same ones for all rows. */
export function valuesOf(...rows: readonly object[]) {
  const columns = Object.keys(rows[0] ?? {}).map((column) => sql.ref(column));
  return sql`(${sql.join(columns)}) values ${sql.join(rows.map((row) => sql`(${sql.join(Object.values(row))})`))}`;
}

/** Assignments of an `update`; each property is a column. Those without a value stay. */
export function assignmentsOf(changes: object) {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  return sql.join(given.map(([column, value]) => sql`${sql.ref(column)} = ${value}`));
}
