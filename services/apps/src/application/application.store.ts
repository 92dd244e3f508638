import type { Insertable, Kysely, Selectable, Updateable } from 'kysely';
import type { ApplicationTable, AppsDatabase } from '../db/schema.ts';

export type ApplicationRow = Selectable<ApplicationTable>;

/** Where a page begins: after this application. */
export interface PageStart {
  readonly createdAt: Date;
  readonly id: string;
}

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
    .select(['id', 'name', 'socket_key_sealed', 'http_key_sealed', 'runtime_keys_updated_at', 'created_at'])
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(page.limit);
  if (ids) query = query.where('id', 'in', ids);
  if (after)
    query = query.where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '>', tuple(after.createdAt, after.id)));
  return query.execute();
}

/** Which of the ids are applications of the account. */
export async function selectOwnedIds(db: Kysely<AppsDatabase>, accountId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('application')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', 'in', ids)
    .execute();
  return rows.map((row) => row.id);
}

/** The application with its row locked until the transaction ends, or undefined when the account has no such application. */
export async function lockApplication(
  tx: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
): Promise<ApplicationRow | undefined> {
  return tx
    .selectFrom('application')
    .selectAll()
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .forUpdate()
    .executeTakeFirst();
}

export async function updateApplication(
  tx: Kysely<AppsDatabase>,
  id: string,
  changes: Updateable<ApplicationTable>,
): Promise<void> {
  await tx.updateTable('application').set(changes).where('id', '=', id).execute();
}

export async function removeApplication(tx: Kysely<AppsDatabase>, id: string): Promise<void> {
  await tx.deleteFrom('application').where('id', '=', id).execute();
}

/** The sealed socket key of any one application, to try the deployment's secret on. */
export async function selectAnySealedKey(db: Kysely<AppsDatabase>) {
  return db.selectFrom('application').select(['id', 'socket_key_sealed']).limit(1).executeTakeFirst();
}
