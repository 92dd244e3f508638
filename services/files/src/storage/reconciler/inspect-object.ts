import { createHash } from 'node:crypto';
import type { ObjectStore } from '../object-store/object-store.ts';
import { countOf } from './finding.ts';
import type { ObjectRow } from './reconciler.store.ts';

/** Longest wait for the next bytes of an object, in milliseconds. */
const STALL_MS = 60_000;

export interface Inspection {
  readonly store: ObjectStore;
  /** Compare sizes only. */
  readonly skipChecksums: boolean;
  readonly counts: { bytesRead: number };
}

export interface Fault {
  readonly kind: 'missing' | 'damaged' | 'unreadable';
  readonly detail: string;
}

/** What is wrong with the object of a row. Throws where the store can't be used at all. */
export async function inspectObject(run: Inspection, row: ObjectRow): Promise<Fault | undefined> {
  try {
    const object: { byteSize: number; checksum?: Buffer } | undefined = run.skipChecksums
      ? await run.store.stat(row.key)
      : await hashObject(run, row.key);
    if (!object) return { kind: 'missing', detail: 'there is no object' };
    if (object.byteSize !== row.byteSize)
      return { kind: 'damaged', detail: `the object has ${countOf(object.byteSize, 'byte')}` };
    if (!object.checksum || row.checksum.equals(object.checksum)) return undefined;
    const detail = `the SHA-256 is ${object.checksum.toString('hex')} and not ${row.checksum.toString('hex')}`;
    return { kind: 'damaged', detail };
  } catch (err) {
    await run.store.check();
    return { kind: 'unreadable', detail: (err as Error).message };
  }
}

async function hashObject(run: Inspection, key: string): Promise<{ byteSize: number; checksum: Buffer } | undefined> {
  const body = await run.store.read(key);
  if (!body) return undefined;
  const hash = createHash('sha256');
  let byteSize = 0;
  const stalled = setTimeout(() => body.destroy(new Error(`No bytes for ${STALL_MS} ms`)), STALL_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      hash.update(chunk);
      byteSize += chunk.byteLength;
      run.counts.bytesRead += chunk.byteLength;
      stalled.refresh();
    }
  } finally {
    clearTimeout(stalled);
  }
  return { byteSize, checksum: hash.digest() };
}
