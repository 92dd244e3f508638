import type { Caller } from './account.ts';

export function uploadAvatar(baseUrl: string, { sessionHeaders }: Caller, photo: Buffer): Promise<void> {
  return post(`${baseUrl}/api/v1/panel/upload-avatar`, sessionHeaders, photo);
}

/** Sends a photo, and reads the answer. */
export async function post(url: string, headers: Record<string, string>, photo: Buffer): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'image/jpeg' },
    body: new Uint8Array(photo),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}
