import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table avatar
      drop constraint if exists avatar_state_check,
      add constraint avatar_state_check
        check (state in ('waiting', 'stored', 'recorded', 'removing', 'replaced', 'refused', 'abandoned'))`.execute(db);
}
