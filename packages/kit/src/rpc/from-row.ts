import { type DescMessage, type MessageInitShape, ScalarType } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';

/**
 * The fields of a message that a row has: a column has the name of its field, as it is in the
 * message or in its type. Null is an absent field, and other columns are ignored.
 */
export function fromRow<D extends DescMessage>({ fields }: D, row: object): MessageInitShape<D> {
  const columns = row as Readonly<Record<string, unknown>>;
  const values = fields.flatMap(({ name, localName, scalar }) => {
    const value = columns[name] ?? columns[localName] ?? undefined;
    if (value === undefined) return [];
    if (value instanceof Date) return [[localName, timestampFromDate(value)]];
    return [[localName, scalar === ScalarType.INT64 ? BigInt(value as string) : value]];
  });
  return Object.fromEntries(values);
}
