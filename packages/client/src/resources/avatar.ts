import type { Http } from '../http/http.ts';
import { fromFetch, readEnvelope } from '../http/response.ts';
import type { CallOptions } from '../options.ts';
import { addDigest, BYTES } from '../upload/upload.ts';

/** The avatar of the account. Needs a session. */
export const createAvatar = (http: Http) => ({
  /**
   * Replaces the avatar by a PNG, JPEG or WebP image. Resolves with the path of the new one.
   */
  async upload(image: Blob | Uint8Array, { signal, idempotencyKey }: CallOptions = {}): Promise<{ readonly avatarUrl: string }> {
    const request = http.toRequest('POST /api/v1/panel/upload-avatar', {});
    request.headers['content-type'] = BYTES;
    const body = image as Blob | Uint8Array<ArrayBuffer>;
    // Browsers hash only on pages from HTTPS.
    const { subtle } = crypto as Partial<typeof crypto>;
    const bytes = image instanceof Blob ? await image.arrayBuffer() : (image as Uint8Array<ArrayBuffer>);
    const sha256 = await subtle?.digest('SHA-256', bytes);
    if (sha256) addDigest(request, new Uint8Array(sha256), idempotencyKey);
    const { envelope } = await http.repeat(request, { signal }, () => http.attempt(request, { body }, signal));
    return envelope.data as { readonly avatarUrl: string };
  },

  /**
   * The image, as WebP.
   *
   * @param options `v` of `avatarUrl`, to get no other avatar than that
   */
  get({ v, signal }: CallOptions & { readonly v?: string | undefined } = {}): Promise<Blob> {
    const request = http.toRequest('GET /api/v1/panel/avatar', { query: { v } });
    return http.repeat(request, { signal }, () => http.attempt(request, {}, signal, readImage));
  },

  /** Removes the avatar, if there is one. */
  remove: (options?: CallOptions): Promise<void> => http.call('DELETE /api/v1/panel/avatar', {}, options),
});

async function readImage(response: Response): Promise<Blob> {
  if (!response.ok) readEnvelope(await fromFetch(response));
  return response.blob();
}
