/** Options of every call. */
export interface CallOptions {
  /** Ends the call, which rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /**
   * `Idempotency-Key` of a change: a repetition with the same key, also by another process, gets
   * the first response. A new one for each call unless given.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface DaysOptions extends CallOptions {
  /** Days up to today (UTC), 1 to 90; 90 unless given. */
  readonly days?: number | undefined;
}

/** Options of a change of what was read before. */
export interface ChangeOptions extends CallOptions {
  /** Entity tag of what was read: if it has another one meanwhile, 412 `changed_meanwhile`. */
  readonly ifMatch?: string | undefined;
}

export interface LatchkeyOptions {
  /** Base URL of the interface, such as `https://panel.example.com`. */
  readonly url: string;
  /**
   * Management API key, `lk_mgmt_…`. Without one the client uses a session: that of the browser,
   * or in other programs the one that `account.signIn` opened, which is held in memory.
   */
  readonly key?: string | undefined;
  /** Used instead of the global `fetch`, also for uploads. */
  readonly fetch?: typeof fetch | undefined;
  /** Retries of a call where they are safe: 2 unless given, 10 at most; 0 for never. */
  readonly retries?: number | undefined;
  /**
   * Longest time of one request, in milliseconds, up to 2,147,483,647: 30,000 unless given. Uploads
   * have their own.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * URL of live events. Without it they are expected at `/api/v1/realtime` of `url`, or, if `url`
   * has a port, on the port after it.
   */
  readonly realtimeUrl?: string | undefined;
}

const RETRIES_MAX = 10;
/** The timers of Node.js end immediately after longer times. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Checked options. Messages never repeat the key. */
export function readOptions({ url, key, retries = 2, timeoutMs = 30_000, ...others }: LatchkeyOptions) {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new TypeError('url must be an http:// or https:// URL, such as https://panel.example.com');
  const { origin, pathname, username, password } = new URL(url);
  if (username !== '' || password !== '') throw new TypeError('url must not have a user name or a password: pass a key');
  const text = key?.trim();
  // An invalid header would appear in the error of fetch.
  if (text !== undefined && !/^[\x21-\x7e]+$/.test(text)) throw new TypeError('key has characters that no key has, or is empty');
  if (!Number.isInteger(retries) || retries < 0 || retries > RETRIES_MAX)
    throw new TypeError(`retries must be a whole number from 0 to ${RETRIES_MAX}`);
  checkTimeout(timeoutMs);
  return { ...others, baseUrl: origin + pathname.replace(/\/+$/, ''), key: text, retries, timeoutMs };
}

export function checkTimeout(timeoutMs: number): void {
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > TIMEOUT_MS_MAX)
    throw new TypeError(`timeoutMs must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
}

export type CheckedOptions = ReturnType<typeof readOptions>;
