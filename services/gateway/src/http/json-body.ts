import type { DomainError } from '@latchkey/kit/errors/errors';
import { formatCount } from '@latchkey/kit/validation/text';
import { errors } from '../errors.ts';

/** Deepest nesting of a body. Ours need two levels. */
const DEPTH_MAX = 8;

/**
 * Most objects, arrays and properties of a body, together. Each costs far more time than its bytes:
 * 64 KiB can have 20,000. Ours need fewer than 20.
 */
const PARTS_MAX = 1_000;

const [QUOTE, BACKSLASH, COLON, BRACKET, BRACE] = Buffer.from('"\\:[{');

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
  const { properties, parts } = countWritten(body);
  if (parts > PARTS_MAX) throw invalid(`must have at most ${formatCount(PARTS_MAX)} objects, arrays and properties`);
  const value = decode(body);
  if (countProperties(value, DEPTH_MAX) !== properties) throw invalid('must not have a property twice');
  return value;
}

function decode(body: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw invalid('must be JSON in UTF-8');
  }
}

function invalid(message: string): DomainError {
  return errors.request_invalid().withDetails({ path: 'body', message });
}

/** Counts in the bytes of JSON. Of other bytes the counts mean nothing. */
function countWritten(body: Buffer): { readonly properties: number; readonly parts: number } {
  let [properties, structures, isText] = [0, 0, false];
  for (let index = 0; index < body.byteLength; index += 1) {
    const byte = body[index];
    if (byte === BACKSLASH) index += 1;
    else if (byte === QUOTE) isText = !isText;
    else if (byte === COLON && !isText) properties += 1;
    else if ((byte === BRACKET || byte === BRACE) && !isText) structures += 1;
  }
  return { properties, parts: properties + structures };
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
