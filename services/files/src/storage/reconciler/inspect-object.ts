import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';
import type { CheckedFile, Finding } from './finding.ts';

/** How a file's object is looked at. */
export interface InspectOptions {
  /** Tells the size only, which reads nothing. */
  readonly skipChecksums: boolean;
  /** Told of bytes as they are read. */
  readonly onBytes: (count: number) => void;
}

/** Longest wait for the next bytes of an object, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000;

/**
 * What is wrong with a file's object, or undefined where it is as the row says.
 *
 * @throws where the store can't be used at all
 */
export async function inspectObject(
  store: ObjectStore,
  file: CheckedFile,
  options: InspectOptions,
): Promise<Finding | undefined> {
  const key = objectKey(file.applicationId, file.id);
  try {
    const object = await lookAt(store, key, options);
    if (!object) return { kind: 'object_missing', file };
    const { byteSize, checksum } = object;
    const intact = byteSize === file.byteSize && (checksum?.equals(file.checksum) ?? true);
    return intact ? undefined : { kind: 'object_damaged', file, byteSize, checksum };
  } catch (err) {
    // A store that is away would make every object unreadable.
    await store.check();
    return { kind: 'object_unreadable', file, reason: (err as Error).message };
  }
}

/** What there is; the checksum only where the bytes were read. */
interface SeenObject {
  readonly byteSize: number;
  readonly checksum?: Buffer;
}

async function lookAt(store: ObjectStore, key: string, options: InspectOptions): Promise<SeenObject | undefined> {
  if (options.skipChecksums) return store.stat(key);
  const body = await store.read(key);
  return body && digest(body, options.onBytes);
}

async function digest(body: Readable, onBytes: (count: number) => void): Promise<SeenObject> {
  const hash = createHash('sha256');
  let byteSize = 0;
  const stalled = setTimeout(() => body.destroy(new Error(`Nothing came for ${STALL_TIMEOUT_MS} ms`)), STALL_TIMEOUT_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      hash.update(chunk);
      byteSize += chunk.byteLength;
      onBytes(chunk.byteLength);
      stalled.refresh();
    }
  } finally {
    clearTimeout(stalled);
  }
  return { byteSize, checksum: hash.digest() };
}
