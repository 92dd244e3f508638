import { createIdToken, readIdToken } from '@latchkey/kit/crypto/id-token';
import { deriveKey } from '@latchkey/kit/crypto/secrets';

export const DOWNLOADS_PATH = '/downloads/';

/** Signs with a key derived from the deployment's secret. */
export function createDownloadUrls(options: { readonly secretKey: string; readonly publicUrl: string }) {
  const key = deriveKey(options.secretKey, 'files/download-url');
  const base = options.publicUrl.replace(/\/+$/, '') + DOWNLOADS_PATH;
  return {
    /** A signed absolute URL of an object. */
    create: (objectId: string, expiresAt: Date) => base + createIdToken(key, objectId, expiresAt),
    /** The object of a token, the end of such a URL; undefined where it is forged or expired. */
    read: (token: string, now: Date) => readIdToken(key, token, now),
  };
}
