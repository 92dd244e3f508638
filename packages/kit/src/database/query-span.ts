import type pg from 'pg';
import { activeTracer, inSpan } from '../tracing/tracer.ts';

/** The verb of a statement and the table that it is about, where it is about one. */
const STATEMENT = /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|begin|commit|rollback|set|alter|create)\b/i;
const TABLE = /\b(?:from|into|update)\s+(?:only\s+)?"?([a-z_][a-z0-9_.]*)"?/i;

const names = new Map<string, string>();
/** Statements are written in the code, where there are some hundreds; those of lists of another length each are as many more. */
const NAMES_MAX = 2_000;

/** Runs a query inside a span, where spans are kept and something is under way that is traced: neither its text nor its parameters are in it. */
export function inQuerySpan<T>(query: unknown, run: () => Promise<T>): Promise<T> {
  const tracer = activeTracer();
  if (tracer?.traceparent() === undefined) return run();
  const name = nameOf(query);
  return inSpan({ name, kind: 'client', attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name } }, run);
}

/** Has the queries of a pool that it takes a connection for by itself made inside spans; those of its clients are their own concern. */
export function tracePool(pool: pg.Pool): void {
  if (!activeTracer()) return;
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const traced = (...args: unknown[]) =>
    typeof args.at(-1) === 'function' ? query(...args) : inQuerySpan(args[0], () => query(...args));
  pool.query = traced as typeof pool.query;
}

/** The name that a statement was given, or what can be told from its text. */
function nameOf(query: unknown): string {
  const { name, text = '' } = typeof query === 'string' ? { text: query } : (query as { name?: string; text?: string });
  if (name !== undefined) return name;
  const known = names.get(text);
  if (known !== undefined) return known;
  const verb = STATEMENT.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
  const table = TABLE.exec(text)?.[1];
  const summary = table === undefined ? verb : `${verb} ${table}`;
  if (names.size < NAMES_MAX) names.set(text, summary);
  return summary;
}
