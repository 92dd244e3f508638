import sharp from 'sharp';
import { type Answer, type Api, checkAnswer } from './api.ts';

export const UPLOAD_AVATAR = '/api/v1/panel/upload-avatar';
export const AVATAR = '/api/v1/panel/avatar';

/** Sends bytes to become an avatar. */
export function uploadAvatar(
  api: Api,
  image: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  mayFail = false,
): Promise<Answer> {
  return api.send('POST', UPLOAD_AVATAR, {
    body: image,
    headers: { 'content-type': 'application/octet-stream', ...headers },
    mayFail,
  });
}

/** An answer that may be an image. */
export interface ImageAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly image: Buffer;
  readonly code: string;
}

/** Reads an image by its `avatarUrl`, or the current one. */
export async function getAvatar(
  api: Api,
  url = AVATAR,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<ImageAnswer> {
  const response = await fetch(api.baseUrl + url, { method, headers: { ...api.headers, ...headers } });
  const image = Buffer.from(await response.arrayBuffer());
  const facts = { status: response.status, headers: response.headers, text: image.toString() };
  const code = response.status >= 400 && method !== 'HEAD' ? checkAnswer(`${method} ${url}`, facts).code : '';
  return { status: response.status, headers: response.headers, image, code };
}

/** A picture of noise, which does not compress. */
export function noise(width: number, height: number) {
  return sharp({ create: { width, height, channels: 3, background: '#000', noise: { type: 'gaussian', mean: 128, sigma: 40 } } });
}

export function plain(width: number, height: number) {
  return sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 60 } } });
}
