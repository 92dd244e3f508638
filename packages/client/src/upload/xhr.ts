/**
 * The part of `XMLHttpRequest` that uploads use: this package is checked without the types of
 * browsers.
 */
export interface Xhr {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  readonly status: number;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: Blob): void;
  abort(): void;
}

/** Undefined outside of browsers. */
export const { XMLHttpRequest } = globalThis as { readonly XMLHttpRequest?: new () => Xhr };
