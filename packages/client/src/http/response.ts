import { ConnectionError, type ErrorDetail, LatchkeyError } from '../errors.ts';
import type { ExchangedKey } from '../types.ts';

/** A response, whichever way it came. `header` is undefined for a header that is absent. */
export interface RawResponse {
  readonly status: number;
  readonly text: string;
  header(name: string): string | undefined;
  /** Empty in browsers, which hide them. */
  readonly setCookies: readonly string[];
}

export async function fromFetch(response: Response): Promise<RawResponse> {
  const { status, headers } = response;
  const header = (name: string) => headers.get(name) ?? undefined;
  return { status, text: await response.text(), header, setCookies: headers.getSetCookie?.() ?? [] };
}

/** A success envelope. */
export interface Envelope {
  readonly success: true;
  readonly message: string;
  readonly data?: unknown;
}

/** @throws LatchkeyError for every response without a success envelope */
export function readEnvelope(response: RawResponse): Envelope {
  const { status } = response;
  if (status === 204) return { success: true, message: '' };
  const envelope = parse(response.text);
  if ((status === 200 || status === 201) && envelope?.success === true) return envelope as unknown as Envelope;
  const facts = factsOf(response);
  if (typeof envelope?.code === 'string' && typeof envelope.message === 'string') {
    const details = envelope.details as readonly ErrorDetail[] | undefined;
    throw new LatchkeyError(describe(envelope.message, details), { ...facts, code: envelope.code, details });
  }
  const what = status >= 300 && status < 400 ? `HTTP ${status}, a redirect` : `HTTP ${status} without the envelope of Latchkey`;
  throw new LatchkeyError(`${what}. Is the URL that of the REST interface?`, { ...facts, code: 'unexpected_response' });
}

/** @throws LatchkeyError for every response without a key (RFC 6749, 5) */
export async function readToken(answer: Response): Promise<ExchangedKey> {
  const response = await fromFetch(answer);
  const { access_token: key, expires_in: expiresInSeconds, scope, error, error_description: text } = parse(response.text) ?? {};
  if (response.status === 200 && typeof key === 'string' && typeof expiresInSeconds === 'number')
    return { key, expiresInSeconds, scopes: String(scope ?? '').split(' ') as ExchangedKey['scopes'] };
  if (typeof error === 'string') throw new LatchkeyError(String(text ?? error), { ...factsOf(response), code: error });
  readEnvelope(response);
  throw new LatchkeyError('The response has no key.', { ...factsOf(response), code: 'unexpected_response' });
}

function factsOf({ status, header }: RawResponse) {
  return { status, requestId: header('x-request-id'), retryAfterSeconds: toSeconds(header('retry-after')) };
}

/** The message for all wrong inputs is the same: the rules that they break make it specific. */
function describe(message: string, details: readonly ErrorDetail[] = []): string {
  const sentence = message.replace(/[.]?$/, '');
  // The only rule that a request can break is the message itself.
  const rules = details.filter((detail) => detail.message.replace(/[.]?$/, '') !== sentence);
  if (rules.length === 0) return message;
  return `${sentence}: ${rules.map(({ path, message: rule }) => `${path.replace(/^\w+\./, '')} ${rule}`).join('; ')}.`;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function toSeconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export const TIMED_OUT = 'No response in time.';

/** The error of a request without a response; the reason of `signal` if that ended it. */
export function toConnectionError(err: unknown, baseUrl: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (err instanceof LatchkeyError) return err;
  if (isTimeout(err)) return new ConnectionError(`${TIMED_OUT} (${baseUrl})`, { code: 'timeout', cause: err });
  // Node.js has the reason in `cause`; browsers have none.
  const reason = (err as { readonly cause?: unknown }).cause ?? err;
  const { code = '', message = '' } = reason as { readonly code?: string; readonly message?: string };
  return new ConnectionError(`Cannot reach ${baseUrl}: ${message || code || 'the connection failed'}.`, {
    code: 'connection_failed',
    cause: err,
    unsent: UNSENT.has(code),
  });
}

/** Errors of Node.js before a connection is made. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

const isTimeout = (err: unknown) => (err as { readonly name?: unknown } | null)?.name === 'TimeoutError';

/** A signal that is aborted with the given one, and with a `TimeoutError` after a time. */
export function withTimeout(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs);
  return signal ? AbortSignal.any([signal, timeout]) : timeout;
}
