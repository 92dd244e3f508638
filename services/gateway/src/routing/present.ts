import { isMessage } from '@bufbuild/protobuf';
import { TimestampSchema, timestampDate } from '@bufbuild/protobuf/wkt';
import type { z } from 'zod';

// biome-ignore lint/suspicious/noExplicitAny: the schema's type, with values of the protocol.
export type Present = (value: any) => unknown;

/**
 * Makes the JSON of a response from a message of the protocol, or from an object with its values:
 * the fields of the schema, with times as texts, bytes in hex, and `null` for what is absent.
 */
export function createPresenter(schema: z.core.$ZodType): Present {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === 'optional') return unlessAbsent(createPresenter(def.innerType), undefined);
  if (def.type === 'nullable') return unlessAbsent(createPresenter(def.innerType), null);
  if (def.type === 'array') {
    const present = createPresenter(def.element);
    return (list: readonly unknown[]) => list.map(present);
  }
  // JSON already, with names that clients may have chosen: it must not be taken for a message.
  if (def.type === 'record' || (def.type === 'object' && def.catchall?._zod.def.type === 'unknown')) return (json) => json;
  if (def.type !== 'object') return presentValue;
  const fields = Object.entries(def.shape).map(([name, field]) => [name, createPresenter(field)] as const);
  return (found: Readonly<Record<string, unknown>>) => {
    const record: Record<string, unknown> = {};
    for (const [name, present] of fields) record[name] = present(found[name]);
    return record;
  };
}

const unlessAbsent =
  (present: Present, absent: null | undefined): Present =>
  (value) =>
    value === undefined || value === null ? absent : present(value);

function presentValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  return isMessage(value, TimestampSchema) ? timestampDate(value).toISOString() : value;
}
