import { glob } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findLogLines } from '../instance/instance.ts';
import { matchOpenApiDocument } from './openapi-document.ts';

/** A body as it is sent: an object becomes JSON, bytes and text are sent unchanged. */
export type Body = object | string | Uint8Array | null;

export interface SendOptions {
  readonly query?: Readonly<Record<string, string>> | string;
  readonly body?: Body;
  readonly headers?: Readonly<Record<string, string>>;
  /** True in tests of faults, where a 5xx is expected. */
  readonly mayFail?: boolean;
}

/** An answer whose form has been checked. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly success: boolean;
  /** `code` of the error envelope; empty for a success. */
  readonly code: string;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document checks the data.
  readonly data: any;
  /** Top-level field of get-files-table. */
  readonly totalPages: number | undefined;
}

/** A client of the REST interface, with the headers of some caller. */
export class Api {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(baseUrl: string, headers: Readonly<Record<string, string>> = {}) {
    this.baseUrl = baseUrl;
    this.headers = headers;
  }

  /** The same caller with further headers; an empty value takes one away. */
  with(headers: Readonly<Record<string, string>>): Api {
    const merged = Object.entries({ ...this.headers, ...headers }).filter(([, value]) => value !== '');
    return new Api(this.baseUrl, Object.fromEntries(merged));
  }

  /**
   * Sends a request and checks what holds for every response: the envelope, the headers, no 5xx,
   * and the OpenAPI document.
   */
  async send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const { query = '', body = null, mayFail = false } = options;
    const search = typeof query === 'string' ? query : new URLSearchParams(query).toString();
    const json = body !== null && typeof body === 'object' && !(body instanceof Uint8Array);
    const response = await fetch(`${this.baseUrl}${path}${search && `?${search}`}`, {
      method,
      headers: { ...(body !== null && { 'content-type': 'application/json' }), ...this.headers, ...options.headers },
      body: (json ? JSON.stringify(body) : body) as string | Uint8Array<ArrayBuffer> | null,
      redirect: 'manual',
    });
    const text = await response.text();
    if (response.status >= 500 && !mayFail) await printLog(response.headers.get('x-request-id') ?? 'no request id');
    const answer = checkAnswer(`${method} ${path}`, { status: response.status, headers: response.headers, text }, mayFail);
    await matchOpenApiDocument(this.baseUrl, { method, path, status: answer.status }, text && JSON.parse(text));
    return answer;
  }

  get(path: string, query?: SendOptions['query'], options: SendOptions = {}): Promise<Answer> {
    return this.send('GET', path, { ...options, ...(query !== undefined && { query }) });
  }

  post(path: string, body: Body = null, query?: SendOptions['query'], options: SendOptions = {}): Promise<Answer> {
    return this.send('POST', path, { ...options, body, ...(query !== undefined && { query }) });
  }

  patch(path: string, body: Body = null, query?: SendOptions['query'], options: SendOptions = {}): Promise<Answer> {
    return this.send('PATCH', path, { ...options, body, ...(query !== undefined && { query }) });
  }

  delete(path: string, body: Body = null, options: SendOptions = {}): Promise<Answer> {
    return this.send('DELETE', path, { ...options, body });
  }
}

/** Prints what the instances logged about a request that failed, once it is written. */
async function printLog(requestId: string): Promise<void> {
  await delay(1_000);
  for await (const logDir of glob(join(tmpdir(), 'latchkey-*', 'logs'))) {
    for (const line of await findLogLines(logDir, requestId)) process.stderr.write(`${line}\n`);
  }
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

const DETAIL_PATH = /^(?:request|(?:body|query|params|header)(?:\.[\w.-]+)?)$/;

/** True if an error has the properties of its code; two codes have details (specification 7). */
function isError(names: string, { code, details }: Record<string, unknown>): boolean {
  if (code !== 'VALIDATION_ERROR' && code !== 'bad_request') return names === 'success,code,message';
  if (names !== 'success,code,message,details' || !Array.isArray(details)) return false;
  const areNamed = (details as unknown[]).every((detail) => {
    const { path, message, ...others } = detail as Record<string, unknown>;
    return DETAIL_PATH.test(String(path)) && typeof message === 'string' && message !== '' && Object.keys(others).length === 0;
  });
  return areNamed && details.length > 0 && details.length <= 10;
}

/** Parses a response and checks its form (specification 1, specification 7). */
export function checkAnswer(
  what: string,
  { status, headers, text }: { status: number; headers: Headers; text: string },
  mayFail = false,
): Answer {
  const fail = (why: string): never => {
    throw new Error(`${what} answered ${status} with ${why}: ${text.slice(0, 500)} (request ${headers.get('x-request-id')})`);
  };
  if (!REQUEST_ID.test(headers.get('x-request-id') ?? '')) fail('no request id');
  if (status === 204 && text === '')
    return { status, headers, text, success: true, code: '', message: '', data: undefined, totalPages: undefined };
  if (headers.get('content-type') !== 'application/json; charset=utf-8') fail(`the type ${headers.get('content-type')}`);
  if (headers.get('cache-control') !== 'no-store') fail('leave to be cached');
  if (headers.get('x-content-type-options') !== 'nosniff') fail('leave to guess its type');
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    fail('a body other than JSON');
  }
  const { success, code = '', message, data, totalPages } = body;
  const names = Object.keys(body).join();
  if (success === true) {
    const forms = ['success,message', 'success,message,data'];
    if (/\/(get-files-table|list-applications|list-api-keys)/.test(what)) forms.push('success,message,data,totalPages');
    if ((status !== 200 && !(status === 201 && what.endsWith('/uploads'))) || !forms.includes(names)) fail('a malformed success');
  } else if (success !== false || status < 400 || !isError(names, body)) fail('a malformed error');
  if (typeof message !== 'string' || message === '') fail('no message');
  if (status >= 500 && !mayFail) fail('a failure of the server');
  if (status === 401 && !headers.get('www-authenticate')?.startsWith('Bearer')) fail('no way to authenticate');
  if (status === 429 && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) fail('no Retry-After');
  const facts = { code: String(code), message: String(message), data, totalPages: totalPages as number | undefined };
  return { status, headers, text, success: success === true, ...facts };
}
