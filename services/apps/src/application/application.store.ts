import { type Insertable, type Kysely, type Selectable, sql, type Updateable } from 'kysely';
import type { ApplicationTable, AppsDatabase } from '../db/schema.ts';

/** What a change may depend on. The sealed keys and the levels, which can be long, stay where they are. */
const CHANGEABLE = [
  'id',
  'account_id',
  'name',
  'status',
  'version',
  'license_requires_client_id',
  'user_requires_client_id',
  'user_requires_license',
  'recent_rotations',
  'last_sequence',
] as const;

/** An application whose row is locked for a change. */
export type ApplicationRow = Pick<Selectable<ApplicationTable>, (typeof CHANGEABLE)[number]>;

/** Where a page begins: after this application. */
export interface PageStart {
  readonly createdAt: Date;
  readonly id: string;
}

/** Adds an application; what the row does not say has the defaults of the schema. */
export async function insertApplication(db: Kysely<AppsDatabase>, row: Insertable<ApplicationTable>): Promise<void> {
  await db.insertInto('application').values(row).execute();
}

/** Applications of an account in order of creation, up to `limit`, all or only the given ones. */
export async function selectApplications(
  db: Kysely<AppsDatabase>,
  accountId: string,
  page: { readonly ids: readonly string[] | undefined; readonly after: PageStart | undefined; readonly limit: number },
) {
  const { ids, after } = page;
  let query = db
    .selectFrom('application')
    .select(['id', 'name', hex('socket_key_sealed'), hex('http_key_sealed')])
    .select([epochMs('runtime_keys_updated_at').as('runtime_keys_updated_ms'), epochMs('created_at').as('created_ms')])
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(page.limit);
  if (ids) query = query.where(isOneOf(ids));
  if (after)
    query = query.where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '>', tuple(after.createdAt, after.id)));
  return query.execute();
}

// For a list, parsing times and bytes would cost more than anything else.

function hex<C extends 'socket_key_sealed' | 'http_key_sealed'>(column: C) {
  return sql<string>`encode(${sql.ref(column)}, 'hex')`.as(column);
}

/** A time in milliseconds since 1970. Named unlike any column, as `order by` would use it and no index. */
function epochMs(column: 'runtime_keys_updated_at' | 'created_at') {
  return sql<number>`extract(epoch from ${sql.ref(column)})::float8 * 1000`;
}

/** One parameter however many ids there are: a list of parameters ends at 65,535, and each length is a statement of its own. */
const isOneOf = (ids: readonly string[]) => sql<boolean>`id = any(${ids}::uuid[])`;

/** Which of the ids are applications of the account. */
export async function selectOwnedIds(db: Kysely<AppsDatabase>, accountId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('application').select('id').where('account_id', '=', accountId).where(isOneOf(ids)).execute();
  return rows.map((row) => row.id);
}

/** Number of the account's applications. */
export async function countApplications(db: Kysely<AppsDatabase>, accountId: string): Promise<number> {
  const { count } = await db
    .selectFrom('application')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Lets one transaction at a time past it that makes an application of the account. */
export async function lockAccount(tx: Kysely<AppsDatabase>, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`applications/${accountId}`}, 0))`.execute(tx);
}

/** The application with its row locked until the transaction ends, or undefined when the account has no such application. */
export async function lockApplication(
  tx: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
): Promise<ApplicationRow | undefined> {
  return tx
    .selectFrom('application')
    .select(CHANGEABLE)
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .forUpdate()
    .executeTakeFirst();
}

/** Changes columns of an application whose row the transaction has locked. */
export async function updateApplication(
  tx: Kysely<AppsDatabase>,
  id: string,
  changes: Updateable<ApplicationTable>,
): Promise<void> {
  await tx.updateTable('application').set(changes).where('id', '=', id).execute();
}

/** Removes an application whose row the transaction has locked; its events stay. */
export async function removeApplication(tx: Kysely<AppsDatabase>, id: string): Promise<void> {
  await tx.deleteFrom('application').where('id', '=', id).execute();
}
