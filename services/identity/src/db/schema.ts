import type { Kysely } from 'kysely';

export { assignmentsOf, valuesOf } from '@latchkey/kit/database/columns';

/** The database or a transaction. Statements are SQL, and the migrations describe the tables. */
export type Db = Kysely<unknown>;
