/** Content type of a request to a method's path that has several calls, and of its response. */
export const BATCH_TYPE = 'application/vnd.latchkey.batch';

export const BATCH_CALLS_MAX = 64;

/** One message of a batch, with facts that JSON can hold. */
export interface BatchPart<F> {
  readonly facts: F;
  readonly message: Uint8Array;
}

/**
 * The body of a batch: the size of an index in four bytes, the index in JSON with facts and byte
 * size of each message, then the messages.
 */
export function encodeBatch(parts: readonly BatchPart<unknown>[]): Buffer {
  const index = Buffer.from(JSON.stringify(parts.map(({ facts, message }) => [facts, message.byteLength])));
  const size = Buffer.allocUnsafe(4);
  size.writeUInt32BE(index.byteLength);
  return Buffer.concat([size, index, ...parts.map(({ message }) => message)]);
}

/** @throws Error for anything but the body of a batch */
export function decodeBatch<F>(body: Uint8Array): BatchPart<F>[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  let end = 4 + bytes.readUInt32BE(0);
  const index = JSON.parse(bytes.toString('utf8', 4, end)) as readonly [F, number][];
  if (index.length > BATCH_CALLS_MAX) throw new Error('too many calls');
  const parts = index.map(([facts, size]) => {
    if (!Number.isInteger(size) || size < 0) throw new Error('a size is not a number of bytes');
    const message = bytes.subarray(end, end + size);
    end += size;
    return { facts, message };
  });
  if (end !== bytes.byteLength) throw new Error('the sizes are wrong');
  return parts;
}
