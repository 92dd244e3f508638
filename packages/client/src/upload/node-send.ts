import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { Http, HttpRequest, Success } from '../http/http.ts';
import { fromFetch, type RawResponse, toConnectionError, withTimeout } from '../http/response.ts';
import type { ContentOptions } from './content.ts';

/** A server or proxy that does not know `Expect` is not waited for any longer. */
const CONTINUE_WAIT_MS = 1_000;
/** No envelope is longer. */
const RESPONSE_BYTES_MAX = 1024 * 1024;

/** Bytes whose chunks are used before the next one is asked for, as they may share a buffer. */
interface ByteSource {
  readonly byteSize: number | undefined;
  chunks(): AsyncIterable<Uint8Array>;
}

type Chunks = AsyncGenerator<Uint8Array, void>;

/** Sends bytes with the HTTP client of Node.js, or with the `fetch` that the client was given. */
export async function sendBytes(
  http: Http,
  request: HttpRequest,
  { byteSize, chunks }: ByteSource,
  options: ContentOptions,
): Promise<Success> {
  const signal = withTimeout(options.signal, options.timeoutMs);
  let failure: { readonly error: unknown } | undefined;
  /** A chunk is sent once the next one is requested. */
  async function* withProgress(): Chunks {
    let sentBytes = 0;
    try {
      for await (const chunk of chunks()) {
        yield chunk;
        sentBytes += chunk.byteLength;
        options.onProgress({ sentBytes, totalBytes: byteSize });
      }
    } catch (error) {
      // `fetch` would report it as its own.
      failure = { error };
      throw error;
    }
  }
  try {
    if (http.options.fetch) {
      const init = { body: toStream(withProgress()), duplex: 'half' as const, signal };
      return http.read(await fromFetch(await http.fetch(request, init)));
    }
    const length = byteSize === undefined ? {} : { 'content-length': String(byteSize) };
    const headers = { ...http.authorize(request), ...length };
    return http.read(await sendRequest({ ...request, headers }, withProgress(), signal));
  } catch (err) {
    if (failure && !signal.aborted) throw failure.error;
    throw toConnectionError(signal.aborted ? signal.reason : err, http.options.baseUrl, options.signal);
  }
}

/** A stream that reads a chunk when it is needed. It may outlive its buffer, so it is copied. */
function toStream(iterator: Chunks): ReadableStream<Uint8Array> {
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { done, value } = await iterator.next();
    if (done) return controller.close();
    // The `slice` of a Buffer copies nothing.
    controller.enqueue(new Uint8Array(value));
  };
  const cancel = async () => void (await iterator.return());
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}

async function sendRequest({ url, method, headers }: HttpRequest, body: Chunks, signal: AbortSignal): Promise<RawResponse> {
  const send = url.startsWith('https:') ? requestHttps : requestHttp;
  // The service then rejects an upload before its bytes are sent.
  const outgoing = send(url, { method, headers: { ...headers, expect: '100-continue' }, signal });
  const responded = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  const ended = responded.then(
    () => false as const,
    () => false as const,
  );
  try {
    outgoing.flushHeaders();
    // The source may give its next chunk never.
    if (await isAwaited(outgoing, ended)) await Promise.race([writeBody(outgoing, body, ended), ended]);
    const [response] = await responded;
    return await readResponse(response);
  } finally {
    if (!outgoing.writableFinished) outgoing.destroy();
  }
}

/** Resolves with whether to send the body. */
async function isAwaited(outgoing: ClientRequest, ended: Promise<false>): Promise<boolean> {
  const waited = new AbortController();
  const continued = once(outgoing, 'continue', waited);
  const isSlow = delay(CONTINUE_WAIT_MS, true, waited);
  return Promise.race([continued.then(() => true), isSlow, ended]).finally(() => waited.abort());
}

/** Writes chunk after chunk until there is a response, or the connection broke. */
async function writeBody(outgoing: ClientRequest, body: Chunks, ended: Promise<false>): Promise<void> {
  for await (const chunk of body) {
    // The chunk must be out before the next one overwrites its buffer.
    const written = new Promise<boolean>((resolve) => outgoing.write(chunk, (err) => resolve(!err)));
    if (!(await Promise.race([written, ended]))) return;
  }
  outgoing.end();
}

async function readResponse(response: IncomingMessage): Promise<RawResponse> {
  const chunks: Buffer[] = [];
  let byteSize = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    byteSize += chunk.length;
    if (byteSize > RESPONSE_BYTES_MAX) throw new Error('the response is too long');
    chunks.push(chunk);
  }
  const { headers, statusCode: status = 0 } = response;
  const header = (name: string) => headers[name]?.toString();
  return { status, text: Buffer.concat(chunks).toString('utf8'), header, setCookies: headers['set-cookie'] ?? [] };
}
