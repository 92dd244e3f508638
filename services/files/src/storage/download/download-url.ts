import { constantTimeEqual, deriveKey, hmac } from '@latchkey/kit/crypto/secrets';

export const DOWNLOADS_PATH = '/downloads/';

const ID_BYTES = 16;
const EXPIRY_BYTES = 8;
const TOKEN = /^([\w-]{32})([\w-]{43})$/;

/**
 * Signs with a key derived from the deployment's secret. A token is the object's id, the expiry and
 * an HMAC of both, so that a forged one costs no query.
 */
export function createDownloadUrls(options: { readonly secretKey: string; readonly publicUrl: string }) {
  const key = deriveKey(options.secretKey, 'files/download-url');
  const base = options.publicUrl.replace(/\/+$/, '') + DOWNLOADS_PATH;
  const sign = (payload: string) => hmac(key, payload).toString('base64url');
  return {
    /** A signed absolute URL; the expiry is rounded up to the whole second. */
    create(objectId: string, expiresAt: Date): string {
      const bytes = Buffer.alloc(ID_BYTES + EXPIRY_BYTES);
      bytes.write(objectId.replaceAll('-', ''), 'hex');
      bytes.writeBigUInt64BE(BigInt(Math.ceil(expiresAt.getTime() / 1000)), ID_BYTES);
      const payload = bytes.toString('base64url');
      return base + payload + sign(payload);
    },
    /** The object of a token, the end of such a URL; undefined where it is forged or expired. */
    read(token: string, now: Date): string | undefined {
      const [, payload = '', signature = ''] = TOKEN.exec(token) ?? [];
      if (!constantTimeEqual(signature, sign(payload))) return undefined;
      const bytes = Buffer.from(payload, 'base64url');
      if (now.getTime() >= Number(bytes.readBigUInt64BE(ID_BYTES)) * 1000) return undefined;
      const hex = bytes.toString('hex', 0, ID_BYTES);
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    },
  };
}
