import { createHash } from 'node:crypto';
import { addAbortSignal } from 'node:stream';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import type { ObjectStore } from './object-store.ts';

/**
 * Reads an object to its end, for its size in bytes and its SHA-256; undefined without an object.
 * Throws the signal's reason after its abort.
 *
 * @param onChunk may copy the chunk, whose memory is released after it
 */
export async function digestObject(
  store: Pick<ObjectStore, 'read'>,
  key: string,
  signal: AbortSignal,
  onChunk: (chunk: Buffer) => void,
): Promise<{ readonly byteSize: number; readonly checksum: Buffer } | undefined> {
  const body = await store.read(key);
  if (!body) return undefined;
  const sha256 = createHash('sha256');
  let byteSize = 0;
  try {
    for await (const chunk of addAbortSignal(signal, body) as AsyncIterable<Buffer>) {
      byteSize += chunk.byteLength;
      sha256.update(chunk);
      onChunk(chunk);
      releaseBytes(chunk);
    }
  } catch (err) {
    signal.throwIfAborted();
    throw err;
  }
  return { byteSize, checksum: sha256.digest() };
}
