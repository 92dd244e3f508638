import type { Http, HttpRequest, Success } from '../http/http.ts';

export interface UploadProgress {
  readonly sentBytes: number;
  /** Undefined for a stream. */
  readonly totalBytes: number | undefined;
}

export interface ContentOptions {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly onProgress: (progress: UploadProgress) => void;
}

/** The bytes of an upload. */
export interface Content {
  readonly name?: string | undefined;
  /** Undefined for a stream, which can be sent only once. */
  readonly byteSize: number | undefined;
  /** SHA-256 of the bytes, once it is known. */
  sha256?: Uint8Array | undefined;
  /** Sets `sha256`. A stream is hashed while it is sent. */
  hash?(signal: AbortSignal | undefined): Promise<void>;
  /**
   * Sends the bytes, of a part those from `from` to before `to`. Every time that it waits is bounded
   * by `timeoutMs`.
   */
  send(http: Http, request: HttpRequest, options: ContentOptions, from?: number, to?: number): Promise<Success>;
  close?(): Promise<void>;
}

export type OpenContent<Source> = (source: Source) => Promise<Content>;

export const toHex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
