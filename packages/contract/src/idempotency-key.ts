/** Time for which the result of a call with a key is replayed. */
export const RESULT_LIFETIME_MS = 24 * 3_600_000;

/** The same for a result that holds a secret. */
export const SECRET_RESULT_LIFETIME_MS = 3_600_000;

/** Characters and length of an idempotency key. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;
