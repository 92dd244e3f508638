import { type Kysely, sql } from 'kysely';

/** The database or a transaction. Statements are SQL, and the migrations describe the tables. */
export type Db = Kysely<unknown>;

/** Columns and values of an `insert`; each property is a column. */
export function valuesOf(row: object) {
  return sql`(${sql.join(Object.keys(row).map((column) => sql.ref(column)))}) values (${sql.join(Object.values(row))})`;
}

/** Assignments of an `update`; each property is a column. */
export function assignmentsOf(changes: object) {
  return sql.join(Object.entries(changes).map(([column, value]) => sql`${sql.ref(column)} = ${value}`));
}
