import type { KeyObject } from 'node:crypto';
import { constantTimeEqual, hmac } from './secrets.ts';

const ID_BYTES = 16;
const EXPIRY_BYTES = 8;
const TOKEN = /^([\w-]{32})([\w-]{43})$/;

const sign = (key: KeyObject, context: string, payload: string) => hmac(key, context + payload).toString('base64url');

/**
 * Signs an id (a UUID) until a time, rounded up to the whole second. A token is both and their
 * HMAC, so that a forged one costs no query.
 *
 * @param context text of a constant length, which the token is valid for alone
 */
export function createIdToken(key: KeyObject, id: string, expiresAt: Date, context = ''): string {
  const bytes = Buffer.alloc(ID_BYTES + EXPIRY_BYTES);
  bytes.write(id.replaceAll('-', ''), 'hex');
  bytes.writeBigUInt64BE(BigInt(Math.ceil(expiresAt.getTime() / 1000)), ID_BYTES);
  const payload = bytes.toString('base64url');
  return payload + sign(key, context, payload);
}

/** The id of a token; undefined where it is forged, expired or of another context. */
export function readIdToken(key: KeyObject, token: string, now: Date, context = ''): string | undefined {
  const [, payload = '', signature = ''] = TOKEN.exec(token) ?? [];
  if (!constantTimeEqual(signature, sign(key, context, payload))) return undefined;
  const bytes = Buffer.from(payload, 'base64url');
  if (now.getTime() >= Number(bytes.readBigUInt64BE(ID_BYTES)) * 1000) return undefined;
  return bytes.toString('hex', 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
