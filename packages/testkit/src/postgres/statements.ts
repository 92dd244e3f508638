import pg from 'pg';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The first statement of each connection of a pool. */
const OPENS_SESSION = /pg_is_in_recovery/;

/** Returns every statement that this process sends while a function runs, once it is connected. */
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
  return sent.filter(({ text }) => !OPENS_SESSION.test(text));
}

/** A node of a plan, as `explain (analyze, format json)` describes it. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

export type PlanCacheMode = 'force_generic_plan' | 'force_custom_plan';

/** All nodes of a statement's plan. It is run; its changes are rolled back. */
export async function explain(
  pool: pg.Pool,
  { text, values }: Statement,
  mode: PlanCacheMode = 'force_generic_plan',
): Promise<PlanNode[]> {
  const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(`set local plan_cache_mode = ${mode}`);
    await client.query(`prepare explained as ${text}`);
    const literals = values.map((value) => (value === null ? 'null' : client.escapeLiteral(toText(value)))).join(', ');
    const { rows } = await client.query(`explain (analyze, format json) execute explained${literals && `(${literals})`}`);
    return flatten(rows[0]['QUERY PLAN'][0].Plan);
  } finally {
    await client.query('rollback');
    await client.query('deallocate explained').catch(() => undefined);
    client.release();
  }
}

function toText(value: unknown): string {
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`;
  if (Array.isArray(value)) return `{${value.map((item) => JSON.stringify(toText(item))).join(',')}}`;
  return value instanceof Date ? value.toISOString() : String(value);
}
