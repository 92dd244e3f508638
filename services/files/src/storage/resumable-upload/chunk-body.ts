import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { errors } from '../../proto-errors.ts';
import { readChunks } from '../upload/verified-body.ts';

/** Longest wait for the next bytes of a chunk: a lost connection must not hold its upload. */
const SILENCE_MS_MAX = 10_000;

/**
 * The body of a chunk. Its parts end properly also where it fails: what came of it is stored.
 *
 * @param checksum SHA-256 that the whole must have
 */
export function createChunkBody(source: Readable, byteSizeMax: number, checksum: Buffer | undefined) {
  const stopped = new AbortController();
  const stop = (error: unknown) => stopped.abort(error);
  const chunks = readChunks(source, stopped.signal);
  const sha256 = checksum && createHash('sha256');
  let byteSize = 0;
  let rest: Uint8Array | undefined;
  const body = { error: undefined as unknown, isEnded: false, stop, take };
  return body;

  /** The next bytes, as many or less at the end. */
  async function* take(byteSize: number): AsyncGenerator<Uint8Array> {
    for (let left = byteSize; left > 0; ) {
      const chunk: Uint8Array | undefined = rest ?? (await next());
      if (!chunk) return;
      const bytes = chunk.subarray(0, left);
      rest = chunk.length > left ? chunk.subarray(left) : undefined;
      left -= bytes.length;
      yield bytes;
    }
  }

  async function next(): Promise<Uint8Array | undefined> {
    if (body.isEnded) return undefined;
    const silence = setTimeout(() => stop(errors.upload_timeout()), SILENCE_MS_MAX);
    try {
      const { value } = await chunks.next();
      byteSize += value?.byteLength ?? 0;
      if (byteSize > byteSizeMax) throw errors.chunk_too_long();
      if (value) sha256?.update(value);
      if (value) return value;
      if (checksum && !sha256?.digest().equals(checksum)) throw errors.checksum_mismatch();
    } catch (err) {
      body.error = err;
    } finally {
      clearTimeout(silence);
    }
    body.isEnded = true;
    return undefined;
  }
}

export type ChunkBody = ReturnType<typeof createChunkBody>;
