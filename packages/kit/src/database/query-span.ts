import type pg from 'pg';
import { activeTracer, inSpan } from '../telemetry/tracing.ts';

const VERB = /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|begin|commit|rollback|set|alter|create)\b/i;
const TABLE = /\b(?:from|into|update)\s+(?:only\s+)?"?([a-z_][a-z0-9_.]*)"?/i;

/** Runs a query inside a span without text and parameters, if a trace is under way. */
export function inQuerySpan<T>(query: unknown, run: () => Promise<T>): Promise<T> {
  if (activeTracer()?.traceparent() === undefined) return run();
  const name = summarize(query as string | pg.QueryConfig);
  return inSpan({ name, kind: 'client', attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name } }, run);
}

/** Puts the pool's own queries into spans; the queries of its clients have their own. */
export function tracePool(pool: pg.Pool): void {
  if (!activeTracer()) return;
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const traced = (...args: unknown[]) =>
    typeof args.at(-1) === 'function' ? query(...args) : inQuerySpan(args[0], () => query(...args));
  pool.query = traced as typeof pool.query;
}

function summarize(query: string | pg.QueryConfig): string {
  const { name, text } = typeof query === 'string' ? { text: query } : query;
  if (name !== undefined) return name;
  const verb = VERB.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
  const table = TABLE.exec(text)?.[1];
  return table === undefined ? verb : `${verb} ${table}`;
}
