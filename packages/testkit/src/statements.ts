import pg from 'pg';

/** A statement as it was sent. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Runs something and returns every statement that was sent meanwhile, by whomever in this process. */
export async function statementsOf(run: () => Promise<unknown>): Promise<Statement[]> {
  const sent: Statement[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function record(this: pg.Client, first: string | pg.QueryConfig, values?: unknown[]) {
    if (typeof first === 'string') sent.push({ text: first, values: values ?? [] });
    else sent.push({ text: first.text, values: first.values ?? [] });
    // biome-ignore lint/complexity/noArguments: pg has many overloads, and all go through untouched.
    return Reflect.apply(query, this, arguments);
  } as typeof query;
  try {
    await run();
  } finally {
    pg.Client.prototype.query = query;
  }
  return sent;
}
