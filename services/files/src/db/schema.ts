import type { Kysely } from 'kysely';

/** The database or a transaction. Statements are SQL, and the migrations describe the tables. */
export type Db = Kysely<unknown>;
