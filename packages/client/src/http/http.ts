import { LatchkeyError } from '../errors.ts';
import type { ChangeOptions, CheckedOptions } from '../options.ts';
import {
  type Envelope,
  fromFetch,
  type RawResponse,
  readEnvelope,
  TIMED_OUT,
  toConnectionError,
  withTimeout,
} from './response.ts';
import { retryDelayMs, sleep } from './retry.ts';
import type { DataOf, EnvelopeOf, InputOf, Target } from './routes.ts';
import { Session } from './session.ts';

/** A request as it is sent. */
export interface HttpRequest {
  readonly method: string;
  /** Path with its parameters, without the query. */
  readonly path: string;
  readonly url: string;
  readonly headers: Record<string, string>;
}

/** A success: the envelope, the path in its `Location`, and its entity tag. */
export interface Success<E = Envelope> {
  readonly envelope: E;
  readonly location: string | undefined;
  readonly etag: string | undefined;
}

interface Parts {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export interface RepeatOptions {
  readonly signal?: AbortSignal | undefined;
  /** True if the body can be sent twice; true unless given. */
  readonly repeatable?: boolean;
}

/** Routes of resumable uploads, whose requests name the version of the tus protocol. */
const UPLOADS = '/api/v1/panel/uploads';

/** 128 random bits in hex. Browsers have `randomUUID` only on pages from HTTPS. */
export function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Sends requests: credential, retries, envelope and errors. */
export class Http {
  readonly options: CheckedOptions;
  readonly session: Session | undefined;
  readonly #fetch: typeof fetch;

  constructor(options: CheckedOptions) {
    this.options = options;
    this.session = options.key === undefined ? new Session() : undefined;
    // Browsers accept no other `this`.
    this.#fetch = options.fetch ?? ((...args) => fetch(...args));
  }

  /** Calls a route, and resolves with `data`. */
  async call<T extends Target>(target: T, input: InputOf<T>, options: ChangeOptions = {}): Promise<DataOf<T>> {
    const { envelope } = await this.send(target, input, options);
    return (envelope as { readonly data?: unknown }).data as DataOf<T>;
  }

  /** Calls a route. */
  async send<T extends Target>(target: T, input: InputOf<T>, options: ChangeOptions = {}): Promise<Success<EnvelopeOf<T>>> {
    const { body } = input as Parts;
    const request = this.toRequest(target, input);
    if (body !== undefined) request.headers['content-type'] = 'application/json';
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const { idempotencyKey = createIdempotencyKey(), ifMatch } = options;
    if (ifMatch !== undefined) request.headers['if-match'] = ifMatch;
    if (request.method !== 'GET' && request.path.startsWith('/api/v1/panel/'))
      request.headers['idempotency-key'] = idempotencyKey;
    const success = await this.repeat(request, options, () => this.attempt(request, init, options.signal));
    return success as Success<EnvelopeOf<T>>;
  }

  /** The request of a route, without its body. */
  toRequest<T extends Target>(target: T, input: InputOf<T> | Parts): HttpRequest {
    const { path: parameters = {}, query = {} } = input as Parts;
    const [method = '', pattern = ''] = target.split(' ');
    const path = pattern.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(parameters[name] ?? ''));
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))).toString();
    const headers: Record<string, string> = path.startsWith(UPLOADS) ? { 'tus-resumable': '1.0.0' } : {};
    return { method, path, url: `${this.options.baseUrl}${path}${search && `?${search}`}`, headers };
  }

  /** Adds the credential to the headers of a request. */
  authorize({ method, path, headers }: HttpRequest): Record<string, string> {
    const { key } = this.options;
    return { ...headers, ...(this.session ? this.session.headers(method, path) : { authorization: `Bearer ${key}` }) };
  }

  /** Runs the attempts of a request where more are safe, each with the CSRF token that it may need. */
  async repeat<T>(request: HttpRequest, options: RepeatOptions, attempt: () => Promise<T>): Promise<T> {
    const { signal, repeatable = true } = options;
    const retries = repeatable ? this.options.retries : 0;
    const idempotent = request.method === 'GET' || 'idempotency-key' in request.headers;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#withCsrfToken(request, options, attempt);
      } catch (err) {
        const delayMs = failures < retries ? retryDelayMs(err, failures, idempotent) : undefined;
        if (delayMs === undefined) throw err;
        await sleep(delayMs, signal);
      }
    }
  }

  /** Sends a request with `fetch`. */
  async fetch(request: HttpRequest, init: RequestInit & { readonly duplex?: 'half' }): Promise<Response> {
    const credentials = this.session ? 'same-origin' : 'omit';
    const headers = this.authorize(request);
    // A redirect would turn a POST into a GET, and could take the key to another host.
    return this.#fetch(request.url, { ...init, method: request.method, headers, credentials, redirect: 'manual' });
  }

  /**
   * Opens a URL without the credential. `timeoutMs` is for the response, not for its body.
   *
   * @throws LatchkeyError `unexpected_response` for every other status than 200
   */
  async open(url: string, signal: AbortSignal | undefined): Promise<Response> {
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(new DOMException(TIMED_OUT, 'TimeoutError')), this.options.timeoutMs);
    try {
      const response = await this.#fetch(url, {
        signal: signal ? AbortSignal.any([signal, waiting.signal]) : waiting.signal,
        credentials: 'omit',
      });
      if (response.status === 200) return response;
      await response.body?.cancel();
      const message = `The download responded with HTTP ${response.status}.`;
      throw new LatchkeyError(message, { code: 'unexpected_response', status: response.status });
    } catch (err) {
      throw toConnectionError(err, new URL(url).origin, signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a request once. `read` throws a LatchkeyError for a response that is not a success. */
  async attempt<T = Success>(
    request: HttpRequest,
    init: RequestInit,
    signal: AbortSignal | undefined,
    read = async (response: Response) => this.read(await fromFetch(response)) as T,
  ): Promise<T> {
    try {
      return await read(await this.fetch(request, { ...init, signal: withTimeout(signal, this.options.timeoutMs) }));
    } catch (err) {
      throw toConnectionError(err, this.options.baseUrl, signal);
    }
  }

  /** @throws LatchkeyError for every response that is not a success */
  read(response: RawResponse): Success {
    const envelope = readEnvelope(response);
    this.session?.take(response.setCookies, envelope.data);
    // Proxies that compress mark the tag as weak, which no change would match.
    const etag = response.header('etag')?.replace(/^W\//, '');
    return { envelope, location: response.header('location'), etag };
  }

  async #withCsrfToken<T>(
    request: HttpRequest,
    { signal, repeatable = true }: RepeatOptions,
    attempt: () => Promise<T>,
  ): Promise<T> {
    const { session } = this;
    if (!session?.needsCsrfToken(request.method, request.path)) return attempt();
    const known = session.csrfToken;
    if (known === undefined) await this.call('GET /api/v1/auth/session', {}, { signal });
    try {
      return await attempt();
    } catch (err) {
      // Another tab of the browser has opened another session.
      if (known === undefined || !repeatable || !(err instanceof LatchkeyError) || err.code !== 'csrf_invalid') throw err;
      session.csrfToken = undefined;
      await this.call('GET /api/v1/auth/session', {}, { signal });
      return attempt();
    }
  }
}
