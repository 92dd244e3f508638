/** Characters and length of an idempotency key. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;
