import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { newId } from '@latchkey/kit/validation/id';

const CHUNK_BYTES = 64 * 1024;

/** A body that came to the end of what it had to give, or the reason why it did not. */
export class BodyFailure extends Error {}

/** Gives some bytes in pieces of 64 KiB, and then ends, fails or hangs. */
export function bodyOf(bytes: Uint8Array, then: 'ends' | 'fails' | 'hangs' = 'ends') {
  const { promise: drained, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  async function* give() {
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
      const piece = bytes.subarray(start, start + CHUNK_BYTES);
      taken += piece.length;
      yield piece;
    }
    resolve();
    if (then === 'fails') throw new BodyFailure('the client went away');
    if (then === 'hangs') await new Promise(() => {});
  }
  const iterator = give();
  return {
    [Symbol.asyncIterator]: () => iterator,
    /** Resolves once all bytes were taken and more are asked for. */
    drained,
    /** Bytes that were taken from it so far. */
    get taken() {
      return taken;
    },
  };
}

export function someBytes(length: number): Buffer {
  return randomBytes(length);
}

export function newKey(applicationId: string = newId()): string {
  return `${applicationId}/${newId()}`;
}

export async function collect(stream: Readable | undefined): Promise<Buffer> {
  if (!stream) throw new Error('there is no such object');
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
