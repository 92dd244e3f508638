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

/** Bytes that can be read from anywhere. */
export interface Parts {
  readonly byteSize: number;
  readonly sha256: Uint8Array;
  /** Sends those from `from` to before `to`. */
  send(http: Http, request: HttpRequest, options: ContentOptions, from: number, to: number): Promise<Success>;
}

export const toHex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
