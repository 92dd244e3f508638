/** Longest reuse of a principal (authentication.proto, `AuthenticateResponse.epoch_key`). */
export const PRINCIPAL_AGE_MS_MAX = 3_000;
