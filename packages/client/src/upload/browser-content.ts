import type { Http, HttpRequest, Success } from '../http/http.ts';
import { fromFetch, type RawResponse, toConnectionError, withTimeout } from '../http/response.ts';
import type { Content, ContentOptions } from './content.ts';
import { type Xhr, XMLHttpRequest } from './xhr.ts';

/**
 * A `Blob` such as a `File`, bytes, or a stream, which is read into memory first. Without the type
 * of the buffer, as TypeScript before 5.7 has none.
 */
export type BrowserSource = Blob | Uint8Array | ReadableStream<Uint8Array>;

export async function openContent(source: BrowserSource): Promise<Content> {
  const blob = await toBlob(source);
  const { name } = blob as { readonly name?: unknown };
  const content: Content = {
    name: typeof name === 'string' ? name : undefined,
    byteSize: blob.size,
    /** Browsers hash only on pages of HTTPS and of the own machine, and only what is in memory. */
    async hash() {
      const { subtle } = globalThis.crypto as { readonly subtle?: typeof globalThis.crypto.subtle };
      this.sha256 = subtle && new Uint8Array(await subtle.digest('SHA-256', await blob.arrayBuffer()));
    },
    send: (http, request, options, from, to) => sendBlob(http, request, blob.slice(from, to), options),
  };
  return content;
}

async function toBlob(source: BrowserSource): Promise<Blob> {
  if (source instanceof Blob) return source;
  // Browsers send streams over HTTP/2 only.
  return source instanceof Uint8Array
    ? new Blob([source as Uint8Array<ArrayBuffer>])
    : new Response(source as ReadableStream<Uint8Array<ArrayBuffer>>).blob();
}

async function sendBlob(http: Http, request: HttpRequest, blob: Blob, options: ContentOptions): Promise<Success> {
  const signal = withTimeout(options.signal, options.timeoutMs);
  try {
    if (XMLHttpRequest && !http.options.fetch) {
      const headers = http.authorize(request);
      return http.read(await sendByXhr(new XMLHttpRequest(), { ...request, headers }, blob, { ...options, signal }));
    }
    return http.read(await fromFetch(await http.fetch(request, { body: blob, signal })));
  } catch (err) {
    throw toConnectionError(signal.aborted ? signal.reason : err, http.options.baseUrl, options.signal);
  }
}

/** `fetch` reports no progress of an upload. */
function sendByXhr(
  xhr: Xhr,
  { method, url, headers }: HttpRequest,
  blob: Blob,
  { signal, onProgress }: Omit<ContentOptions, 'signal'> & { readonly signal: AbortSignal },
): Promise<RawResponse> {
  // The signal of an aborted upload fires no event.
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    xhr.open(method, url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({ loaded }) => onProgress({ sentBytes: loaded, totalBytes: blob.size });
    xhr.onload = () => {
      const header = (name: string) => xhr.getResponseHeader(name) ?? undefined;
      resolve({ status: xhr.status, text: xhr.responseText, header, setCookies: [] });
    };
    xhr.onerror = () => reject(new TypeError('the connection failed'));
    xhr.onabort = () => reject(signal.reason);
    signal.addEventListener('abort', () => xhr.abort(), { once: true });
    xhr.send(blob);
  });
}
