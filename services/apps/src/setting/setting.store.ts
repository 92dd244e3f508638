import type pg from 'pg';

/** The settings of an application as its row has them. */
export interface SettingsRow {
  readonly license_requires_client_id: boolean;
  readonly user_requires_client_id: boolean;
  readonly user_requires_license: boolean;
  readonly version: string;
  readonly status: 'online' | 'paused';
}

/** The most frequent statement of the service, named so that it is parsed and planned once a connection. */
const SELECT_SETTINGS = {
  name: 'select-settings',
  text: `select license_requires_client_id, user_requires_client_id, user_requires_license, version, status
    from application where id = $1 and account_id = $2`,
};

/** The settings, or undefined when the account has no such application. */
export async function selectSettings(pool: pg.Pool, accountId: string, applicationId: string): Promise<SettingsRow | undefined> {
  const { rows } = await pool.query<SettingsRow>({ ...SELECT_SETTINGS, values: [applicationId, accountId] });
  return rows[0];
}
