import type { Kysely } from 'kysely';

/** The database or a transaction. Statements are SQL, and the migrations describe the tables. */
export type Db = Kysely<unknown>;

/** The settings of an application. Each column has the name of its field in the protocol. */
export interface SettingsRow {
  readonly status: 'online' | 'paused';
  readonly version: string;
  readonly license_requires_client_id: boolean;
  readonly user_requires_client_id: boolean;
  readonly user_requires_license: boolean;
}
