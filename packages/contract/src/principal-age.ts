/**
 * Longest time that a gateway reuses the result of an authentication (authentication.proto,
 * `AuthenticateResponse.epoch_key`).
 */
export const PRINCIPAL_AGE_MS_MAX = 3_000;
