import type { ApiKey } from '@latchkey/client';

const DAY_MS = 86_400_000;
const UNUSED_DAYS = 90;

export type KeyState = 'active' | 'unused' | 'expired' | 'revoked';

/** The state of a key. One that works and was not used for 90 days should perhaps be revoked. */
export function readState({ revokedAt, expiresAt, lastUsedAt, createdAt }: ApiKey, now = Date.now()): KeyState {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && Date.parse(expiresAt) <= now) return 'expired';
  return now - Date.parse(lastUsedAt ?? createdAt) > UNUSED_DAYS * DAY_MS ? 'unused' : 'active';
}

export const maskKey = ({ publicId, keyLast4 }: Pick<ApiKey, 'publicId' | 'keyLast4'>) => `lk_mgmt_${publicId}_…${keyLast4}`;

/** The time in whole days from now. */
export const inDays = (days: number, now = Date.now()) => new Date(now + days * DAY_MS).toISOString();

/** The end of a day of this time zone. */
export const endOfDay = (date: string) => new Date(`${date}T23:59:59`);
