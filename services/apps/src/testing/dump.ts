import type pg from 'pg';

/** Every value of every column of every table that is not the system's, as text; bytes both in hex and as Latin-1. */
export async function dump(db: pg.Pool): Promise<string> {
  const { rows: tables } = await db.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
  );
  const parts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await db.query<Record<string, unknown>>(`select t.*, t::text as whole_row from ${name} t`);
    for (const row of rows) parts.push(...Object.values(row).map(toText));
  }
  return parts.join('\n');
}

function toText(value: unknown): string {
  if (Buffer.isBuffer(value)) return `${value.toString('hex')} ${value.toString('latin1')}`;
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
