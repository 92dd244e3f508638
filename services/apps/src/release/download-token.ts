import type { KeyObject } from 'node:crypto';
import { constantTimeEqual, deriveKey, hmac } from '@latchkey/kit/crypto/secrets';

const HOUR_MS = 3_600_000;
/** Hours that a token is valid at least: an updater may ask its user before it downloads. */
const LIFETIME_HOURS = 24;
const ID_BYTES = 16;
const HOUR_BYTES = 4;
const TOKEN = /^([\w-]{27})([\w-]{43})$/;

export const deriveDownloadKey = (secretKey: string): KeyObject => deriveKey(secretKey, 'apps/update-download');

const sign = (key: KeyObject, applicationId: string, payload: string) =>
  hmac(key, `${applicationId} ${payload}`).toString('base64url');

/** Hour since 1970 in which a new token expires. It changes once an hour: feeds can be cached. */
export const expiryHour = (now: Date): number => Math.ceil(now.getTime() / HOUR_MS) + LIFETIME_HOURS;

/** Signs a file for download. */
export function createDownloadToken(key: KeyObject, applicationId: string, fileId: string, now: Date): string {
  const bytes = Buffer.alloc(ID_BYTES + HOUR_BYTES);
  bytes.write(fileId.replaceAll('-', ''), 'hex');
  bytes.writeUInt32BE(expiryHour(now), ID_BYTES);
  const payload = bytes.toString('base64url');
  return payload + sign(key, applicationId, payload);
}

/** The file of a token; undefined where it is forged, expired or of another application. */
export function readDownloadToken(key: KeyObject, applicationId: string, token: string, now: Date): string | undefined {
  const [, payload = '', signature = ''] = TOKEN.exec(token) ?? [];
  if (!constantTimeEqual(signature, sign(key, applicationId, payload))) return undefined;
  const bytes = Buffer.from(payload, 'base64url');
  if (now.getTime() >= bytes.readUInt32BE(ID_BYTES) * HOUR_MS) return undefined;
  return bytes.toString('hex', 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
