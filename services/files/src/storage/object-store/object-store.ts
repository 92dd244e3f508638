import type { Readable } from 'node:stream';
import { parseId } from '@latchkey/kit/validation/id';

export interface StoredObject {
  readonly key: string;
  readonly byteSize: number;
  /** Left by an upload that never finished; it can only be removed. */
  readonly unfinished: boolean;
}

/** Bytes from `start` to `end`, both included; `start` is no greater than `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface PutOptions {
  /** False for an object that may be lost with the power, which is cheaper; true unless set. */
  readonly durable?: boolean;
}

/** Durable bytes of an unfinished object, and where the store has them. */
export interface Appended {
  readonly byteSize: number;
  /** JSON that the caller keeps and only the store reads; `{}` before the first bytes. */
  readonly state: { readonly tail?: string };
}

export interface AppendOptions {
  /** A new id for each caller, which removes the objects under it other than the key's own. */
  readonly writerId: string;
  /** True if an earlier caller may still be writing; it damages nothing then. */
  readonly isContested: boolean;
}

/** The store does not have the bytes that it was said to have, as after a restore. */
export class LostBytesError extends Error {
  override readonly name = 'LostBytesError';
}

/**
 * Stores bytes by keys: `<application id>/<object id>`, and for avatars `<account id>/<object id>`;
 * each is written once. Every method rejects within a bounded time when the store does not respond.
 * Several processes may use one store concurrently.
 */
export interface ObjectStore {
  /**
   * Reads a body to its end and resolves once the object is durable. Reads only as fast as it
   * stores, and copies each chunk before it reads the next, as its memory may be reused. Rejects
   * when the body does, when `signal` aborts, and when the store fails, and then tries to leave
   * nothing.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, signal: AbortSignal, options?: PutOptions): Promise<void>;
  /**
   * Appends a body to an unfinished object and resolves once its bytes are durable. What an earlier
   * call wrote beyond `from` is overwritten. `state.tail` is the id of a further object with the
   * last bytes; one that the result no longer names is not needed once the result is recorded.
   *
   * @throws LostBytesError
   */
  append(
    key: string,
    from: Appended,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    options: AppendOptions,
  ): Promise<Appended>;
  /**
   * Makes an unfinished object of all its bytes an object. May be repeated.
   *
   * @throws LostBytesError
   */
  publish(key: string, whole: Appended): Promise<void>;
  /**
   * The bytes, or undefined without an object. A range past the end is cut. The caller reads to the
   * end or destroys the stream.
   */
  read(key: string, range?: ByteRange): Promise<Readable | undefined>;
  /** Path of the object's file, whether it exists or not; undefined for a remote store. */
  localPath(key: string): string | undefined;
  stat(key: string): Promise<{ readonly byteSize: number } | undefined>;
  /** Removes objects and unfinished writes of keys. Missing ones count as removed. */
  remove(...keys: string[]): Promise<void>;
  /** Every object and unfinished write, in no order; concurrent changes may be missing. */
  list(): AsyncIterable<StoredObject>;
  /** A URL at which the store itself serves the object; undefined where it serves none. */
  createDownloadUrl(
    key: string,
    description: { readonly fileName: string; readonly contentType: string; readonly lifetimeSeconds: number },
  ): Promise<string | undefined>;
  check(): Promise<void>;
  close(): Promise<void>;
}

/** The object of a file of an application, or of an account's avatar. */
export const objectKey = (ownerId: string, id: string): string => `${ownerId}/${id}`;

export const isId = (text: string): boolean => parseId(text) === text;

/** The ids of a key, or undefined for other text, which might lead out of the store's folder. */
export function parseObjectKey(key: string) {
  const [ownerId = '', id = '', ...more] = key.split('/');
  return more.length === 0 && isId(ownerId) && isId(id) ? { ownerId, id } : undefined;
}

export function requireObjectKey(key: string) {
  const parts = parseObjectKey(key);
  if (!parts) throw new TypeError('an object key is <application id>/<object id>');
  return parts;
}

/** Makes a browser save a file. File names need no escaping (specification 2.5). */
export const attachment = (fileName: string): string => `attachment; filename="${fileName}"`;
