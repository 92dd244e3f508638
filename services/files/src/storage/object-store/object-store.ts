import type { Readable } from 'node:stream';

/** An object as the store lists it. */
export interface StoredObject {
  readonly key: string;
  readonly byteSize: number;
  /** What an upload that was never finished left under this key; it is no object and can only be removed. */
  readonly unfinished: boolean;
}

/** What a download URL says of the bytes. */
export interface DownloadDescription {
  readonly fileName: string;
  readonly contentType: string;
  readonly lifetimeSeconds: number;
}

/** Bytes from `start` to `end`, both included; `start` is no greater than `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** How an object is stored. */
export interface PutOptions {
  /** False for an object that nobody misses after a loss of power, which costs less; true unless set. */
  readonly durable?: boolean;
}

/**
 * Keeps bytes by keys (architecture 4). Keys are `<application id>/<file id>`, and for avatars `<account id>/<object id>`; each is written once. Every method rejects within a bounded
 * time when the store does not answer, and two processes may use the same store at once.
 */
export interface ObjectStore {
  /**
   * Reads a body to its end and resolves once the object is durable: it survives the end of every process and, unless it need not, of the machine's power. Reads only
   * as fast as it stores, copies each piece before it asks for the next, as that may take its memory away, and holds a bounded part of the body.
   *
   * Rejects when the body does, when `signal` aborts, and when the store fails. It then tried to leave nothing; what it could not undo is
   * removed by {@link remove}.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, signal: AbortSignal, options?: PutOptions): Promise<void>;
  /**
   * The bytes, or undefined where there is no such object. Of a range that goes past the end, those that there are: none where it begins there. The
   * caller reads to the end or destroys the stream.
   */
  read(key: string, range?: ByteRange): Promise<Readable | undefined>;
  /**
   * The file that the object lies in, where the store keeps it as one that other processes of this machine can read; undefined elsewhere. It does not
   * look whether it is there.
   */
  localPath(key: string): string | undefined;
  /** Size in bytes, or undefined where there is no such object. */
  stat(key: string): Promise<{ readonly byteSize: number } | undefined>;
  /** Removes objects and what unfinished writes left under their keys. What is not there is as good as removed. */
  remove(...keys: string[]): Promise<void>;
  /** Every object and everything unfinished, in no order. What is written or removed meanwhile may be missing or not. */
  list(): AsyncIterable<StoredObject>;
  /** A URL at which the store itself serves the object, or undefined where it can't; it does not look whether the object is there. */
  createDownloadUrl(key: string, description: DownloadDescription): Promise<string | undefined>;
  /** Rejects while the store can't be used. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** The object of a file of an application, or of an account's avatar. */
export function objectKey(ownerId: string, id: string): string {
  return `${ownerId}/${id}`;
}
