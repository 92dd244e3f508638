import type { DomainError } from '@latchkey/kit/errors/errors';
import { errors } from '../errors.ts';

/** Deepest nesting of a body. Ours need two levels. */
const DEPTH_MAX = 8;

/** A string in JSON text, and the colon after the name of a property. */
const STRING_TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"\s*(:?)/g;

const WELL_FORMED = 'must not have half a surrogate pair';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a JSON body; an empty one is undefined. Unlike `JSON.parse`, rejects duplicate properties,
 * `__proto__`, lone surrogates, deep nesting and bytes that are not UTF-8.
 *
 * @throws `request_invalid`
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.byteLength === 0) return undefined;
  const { text, value } = decode(body);
  if (countProperties(value, DEPTH_MAX) !== countWrittenProperties(text)) throw invalid('must not have a property twice');
  return value;
}

function decode(body: Buffer): { readonly text: string; readonly value: unknown } {
  try {
    const text = utf8.decode(body);
    return { text, value: JSON.parse(text) };
  } catch {
    throw invalid('must be JSON in UTF-8');
  }
}

function invalid(message: string): DomainError {
  return errors.request_invalid().withDetails({ path: 'body', message });
}

function countWrittenProperties(text: string): number {
  let count = 0;
  for (const match of text.matchAll(STRING_TOKEN)) if (match[1] === ':') count += 1;
  return count;
}

function countProperties(value: unknown, depth: number): number {
  if (typeof value === 'string' && !value.isWellFormed()) throw invalid(WELL_FORMED);
  if (typeof value !== 'object' || value === null) return 0;
  if (depth === 0) throw invalid(`must be nested at most ${DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countProperties(item, depth - 1), 0);
  let count = 0;
  for (const [name, item] of Object.entries(value)) {
    if (name === '__proto__') throw invalid('must not have a property named __proto__');
    if (!name.isWellFormed()) throw invalid(WELL_FORMED);
    count += 1 + countProperties(item, depth - 1);
  }
  return count;
}
