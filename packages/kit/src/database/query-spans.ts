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

function summarize(query: string | pg.QueryConfig): string {
  const { name, text } = typeof query === 'string' ? { text: query } : query;
  if (name !== undefined) return name;
  const verb = VERB.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
  const table = TABLE.exec(text)?.[1];
  return table === undefined ? verb : `${verb} ${table}`;
}
