import type pg from 'pg';

/** What tells whether the live clients of an application are up to date. */
export interface LiveStateRow {
  readonly id: string;
  readonly last_sequence: string;
  readonly socket_key_hash: Buffer;
}

/** Named, since every node that holds live connections asks it every few seconds. */
const SELECT_LIVE_STATES = {
  name: 'select-live-states',
  text: 'select id, last_sequence, socket_key_hash from application where id = any($1::uuid[])',
};

/** The states of those of the applications that exist, in no order. */
export async function selectLiveStates(pool: pg.Pool, ids: readonly string[]): Promise<LiveStateRow[]> {
  const { rows } = await pool.query<LiveStateRow>({ ...SELECT_LIVE_STATES, values: [ids] });
  return rows;
}
