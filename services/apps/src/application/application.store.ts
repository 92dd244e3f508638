import { ApplicationSettingsSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type Insertable, type Kysely, type Selectable, sql, type Updateable } from 'kysely';
import type pg from 'pg';
import type { ApplicationTable, AppsDatabase, SettingsRow } from '../db/schema.ts';
import type { RuntimeKeyType } from '../runtime-key/vault.ts';

export type { SettingsRow } from '../db/schema.ts';

const SETTING_COLUMNS = ApplicationSettingsSchema.fields.map(({ name }) => name as keyof SettingsRow);

/** Columns that a change may depend on: not the sealed keys and the levels, which can be long. */
const CHANGEABLE = ['id', 'account_id', 'name', 'recent_rotations', 'last_sequence'] as const;

/** An application whose row is locked for a change. */
export type ApplicationRow = Pick<Selectable<ApplicationTable>, (typeof CHANGEABLE)[number]> & SettingsRow;

/** A page begins after this row. */
export interface PageStart {
  readonly createdAt: Date;
  readonly id: string;
}

/** Adds an application. Columns that are not given have the defaults of the schema. */
export async function insertApplication(db: Kysely<AppsDatabase>, row: Insertable<ApplicationTable>): Promise<void> {
  await db.insertInto('application').values(row).execute();
}

/** Applications of an account in order of creation, all or only the given ones. */
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

/** A time in milliseconds since 1970. Its name differs from the column's, or `order by` would use it and no index. */
function epochMs(column: 'runtime_keys_updated_at' | 'created_at') {
  return sql<number>`extract(epoch from ${sql.ref(column)})::float8 * 1000`;
}

/** One parameter for any number of ids: a list of parameters ends at 65,535, and each length is another statement. */
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

/** Serialises the transactions that create an application of the account. */
export async function lockAccount(tx: Kysely<AppsDatabase>, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`applications/${accountId}`}, 0))`.execute(tx);
}

/** The application with its row locked until the transaction ends, or undefined if the account has no such application. */
export async function lockApplication(
  tx: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
): Promise<ApplicationRow | undefined> {
  return tx
    .selectFrom('application')
    .select([...CHANGEABLE, ...SETTING_COLUMNS])
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .forUpdate()
    .executeTakeFirst();
}

/** Changes columns of an application whose row the transaction has locked. */
export async function updateApplication(tx: Kysely<AppsDatabase>, id: string, changes: Updateable<ApplicationTable>) {
  await tx.updateTable('application').set(changes).where('id', '=', id).execute();
}

/** Deletes an application whose row the transaction has locked; its events stay. */
export async function removeApplication(tx: Kysely<AppsDatabase>, id: string): Promise<void> {
  await tx.deleteFrom('application').where('id', '=', id).execute();
}

/** The license levels in their order, or undefined if the account has no such application. */
export async function selectLevels(db: Kysely<AppsDatabase>, accountId: string, applicationId: string) {
  const row = await db
    .selectFrom('application')
    .select('license_levels')
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row?.license_levels;
}

/** The most frequent statement of the service, named so that each connection parses and plans it once. */
const SELECT_SETTINGS = {
  name: 'select-settings',
  text: `select ${SETTING_COLUMNS} from application where id = $1 and account_id = $2`,
};

/** The settings, or undefined if the account has no such application. */
export async function selectSettings(pool: pg.Pool, accountId: string, applicationId: string): Promise<SettingsRow | undefined> {
  const { rows } = await pool.query<SettingsRow>({ ...SELECT_SETTINGS, values: [applicationId, accountId] });
  return rows[0];
}

/** The application behind a runtime key. */
export type KeyHolderRow = SettingsRow & Pick<ApplicationRow, 'id' | 'account_id' | 'name' | 'last_sequence'>;

const SELECT_KEY_HOLDER = `select id, account_id, name, last_sequence, ${SETTING_COLUMNS} from application`;

/** Named: every runtime call makes one of these. */
const LOOK_UP = {
  socketKey: { name: 'look-up-socket-key', text: `${SELECT_KEY_HOLDER} where socket_key_hash = $1` },
  httpKey: { name: 'look-up-http-key', text: `${SELECT_KEY_HOLDER} where http_key_hash = $1` },
} as const;

/** The application whose key of that type has the hash. */
export async function selectByKeyHash(pool: pg.Pool, type: RuntimeKeyType, hash: Buffer): Promise<KeyHolderRow | undefined> {
  const { rows } = await pool.query<KeyHolderRow>({ ...LOOK_UP[type], values: [hash] });
  return rows[0];
}

/** The sealed socket key of the application with the lowest id, to verify the deployment's secret with. */
export async function selectFirstSealedKey(db: Kysely<AppsDatabase>) {
  return db.selectFrom('application').select(['id', 'socket_key_sealed']).orderBy('id').limit(1).executeTakeFirst();
}
