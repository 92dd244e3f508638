import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { AppsDatabase } from '../db/schema.ts';
import type { SettingsRow } from '../setting/setting.store.ts';
import type { RuntimeKeyType } from './vault.ts';

/** The application behind a runtime key. */
export interface KeyHolderRow extends SettingsRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly last_sequence: string;
}

const COLUMNS = `id, account_id, name, last_sequence, version, status,
  license_requires_client_id, user_requires_client_id, user_requires_license`;

/** Named, since every runtime call makes one of these. */
const LOOK_UP = {
  socketKey: { name: 'look-up-socket-key', text: `select ${COLUMNS} from application where socket_key_hash = $1` },
  httpKey: { name: 'look-up-http-key', text: `select ${COLUMNS} from application where http_key_hash = $1` },
} as const;

/** The application whose key of that type has the hash, or undefined when none has. */
export async function selectByKeyHash(pool: pg.Pool, type: RuntimeKeyType, hash: Buffer): Promise<KeyHolderRow | undefined> {
  const { rows } = await pool.query<KeyHolderRow>({ ...LOOK_UP[type], values: [hash] });
  return rows[0];
}

/** The sealed socket key of the application with the lowest id, to try the deployment's secret on. */
export async function selectFirstSealedKey(db: Kysely<AppsDatabase>) {
  return db.selectFrom('application').select(['id', 'socket_key_sealed']).orderBy('id').limit(1).executeTakeFirst();
}
