import pg from 'pg';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Returns every statement that this process sends while a function runs. */
export async function statementsOf(run: () => Promise<unknown>): Promise<Statement[]> {
  const sent: Statement[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function record(this: pg.Client, first: string | pg.QueryConfig, values?: unknown[]) {
    if (typeof first === 'string') sent.push({ text: first, values: values ?? [] });
    else sent.push({ text: first.text, values: first.values ?? [] });
    // biome-ignore lint/complexity/noArguments: pg has many overloads.
    return Reflect.apply(query, this, arguments);
  } as typeof query;
  try {
    await run();
  } finally {
    pg.Client.prototype.query = query;
  }
  return sent;
}
